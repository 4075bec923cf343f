/*
 * Lets linux.uml run on processors whose register state is larger than it knows.
 *
 * User-Mode Linux 6.1 moves its processes' vector registers with PTRACE_{GET,SET}REGSET in a buffer of 2696 bytes:
 * x87 to AVX-512 and protection keys. A processor with AMX has 11008; the machine's kernel gives away the first
 * part of that gladly but takes back nothing but the whole ("ptrace set fp regs failed, errno = 14"). This
 * library, put in front of the C library's ptrace, makes the whole: the tail, which no process can use without
 * asking the kernel first, is written as unused.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

enum { GET_REGISTERS = 0x4204, SET_REGISTERS = 0x4205, VECTOR_STATE = 0x202 };
enum { USE_BITS_OFFSET = 512, KNOWN_STATES = 0x3ff, LARGEST = 1 << 16 };

static unsigned char whole[LARGEST] __attribute__((aligned(64)));
static size_t whole_size; /* what the machine's kernel calls whole; 0: not asked yet */

long ptrace(int request, ...)
{
	static long (*next)(int, ...);
	va_list arguments;
	va_start(arguments, request);
	int process = va_arg(arguments, int);
	void *address = va_arg(arguments, void *);
	void *data = va_arg(arguments, void *);
	va_end(arguments);
	if (!next)
		next = (long (*)(int, ...))dlsym(RTLD_NEXT, "ptrace");
	if (request != SET_REGISTERS || (uintptr_t)address != VECTOR_STATE)
		return next(request, process, address, data);

	struct iovec *part = data;
	if (!whole_size) {
		struct iovec all = {whole, sizeof whole};
		long failed = next(GET_REGISTERS, process, address, &all);
		if (failed)
			return failed;
		whole_size = all.iov_len;
	}
	if (part->iov_len >= whole_size)
		return next(request, process, address, data);
	uint64_t used;
	memcpy(whole, part->iov_base, part->iov_len);
	memset(whole + part->iov_len, 0, whole_size - part->iov_len);
	memcpy(&used, whole + USE_BITS_OFFSET, sizeof used);
	used &= KNOWN_STATES;
	memcpy(whole + USE_BITS_OFFSET, &used, sizeof used);
	struct iovec all = {whole, whole_size};
	return next(request, process, address, &all);
}
