/** Calls of the controller's API. The token is kept in memory alone: it ends with the page. */

/** An answer other than success. `status` is 0 where the controller did not answer. */
export class ApiError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export class Api {
  #token = null;

  /** Show this token with each call. */
  useToken(token) {
    this.#token = token;
  }

  get hasToken() {
    return this.#token !== null;
  }

  /** Returns the document at a path. Raises ApiError. */
  async get(path, signal) {
    return (await this.open(path, { signal })).json();
  }

  /** Sends a document, and returns the answer's, or null. Raises ApiError. */
  async send(method, path, body) {
    const headers = body === undefined ? {} : { "Content-Type": "application/json" };
    const response = await this.open(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return response.status === 204 ? null : response.json();
  }

  /** Returns the successful response to a request. Raises ApiError. */
  async open(path, options = {}) {
    const headers = { ...options.headers };
    if (this.#token !== null) headers.Authorization = `Bearer ${this.#token}`;
    let response;
    try {
      response = await fetch(path, {
        ...options,
        headers,
        cache: "no-store",
        credentials: "same-origin",
        referrerPolicy: "no-referrer",
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, "the controller does not answer");
    }
    if (response.ok) return response;
    throw new ApiError(response.status, await detail(response));
  }
}

async function detail(response) {
  try {
    const problem = await response.json();
    const fields = (problem.errors ?? []).map((one) => `${one.field}: ${one.detail}`);
    return fields.length > 0 ? fields.join("; ") : problem.detail;
  } catch {
    return `the controller answered ${response.status}`;
  }
}
