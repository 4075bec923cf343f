/** Follows server-sent events with `fetch`, because `EventSource` cannot send a token in a header. */

/**
 * Yields each event's document as it comes, until the stream ends. `onOpen` is called when the stream has begun, and
 * `onLife` whenever something comes, also a mere sign of life.
 */
export async function* follow(api, last, signal, { onOpen, onLife }) {
  const headers = last === null ? {} : { "Last-Event-ID": String(last) };
  const response = await api.open("/v1/events", { headers, signal });
  onOpen();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let data = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    onLife();
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
      else if (line === "" && data.length > 0) {
        yield JSON.parse(data.join("\n"));
        data = [];
      }
    }
  }
}
