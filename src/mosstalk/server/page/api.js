// Requests to the server that this page came from. Addresses are relative, for servers behind a
// path of another one.

const KEY = "mosstalk.key"; // in sessionStorage: this tab, until it is closed

let askForKey = async () => null;

/** What the server refused, in its own words. */
export class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** `ask(isWrong)` resolves to a key, or to null where the user has none. */
export function onKeyNeeded(ask) {
  askForKey = ask;
}

/**
 * A response with status 2xx. `json` or `form` is the body.
 * Throws Refusal, TypeError (no connection) and AbortError.
 */
export async function call(path, { method, json, form, signal } = {}) {
  for (;;) {
    const key = sessionStorage.getItem(KEY);
    const response = await fetch(path, {
      method: method ?? (json || form ? "POST" : "GET"),
      headers: {
        ...(key && { Authorization: `Bearer ${key}` }),
        ...(json && { "Content-Type": "application/json" }),
      },
      body: json ? JSON.stringify(json) : form,
      signal,
    });
    if (response.ok) return response;
    const refusal = await readRefusal(response);
    if (refusal.status !== 401) throw refusal;
    const given = await askForKey(key !== null);
    if (given === null) throw refusal;
    sessionStorage.setItem(KEY, given);
  }
}

/** What a user is told of an error that `call` has thrown. */
export function explain(error) {
  if (error instanceof Refusal) return sentence(error.message);
  if (error instanceof TypeError) return "The server does not answer. Is it still running?";
  return sentence(error.message);
}

async function readRefusal(response) {
  const body = await response.json().catch(() => null);
  const { code = "", message = `the server answered ${response.status}` } = body?.error ?? {};
  return new Refusal(response.status, code, message);
}

function sentence(text) {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
