// Requests to the server that served this page, and to no other.

const KEPT = "recallite-token";
let token = "";
let ask = null;
let asking = null;

export class ApiError extends Error {
  constructor(status, type, message, field = null) {
    super(message);
    this.status = status;
    this.type = type;
    this.field = field;
  }
}

function plain(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// Takes the token out of the address, so that neither history nor a copied link has it.
export function takeToken() {
  const given = /^#token=([^&]*)&?(.*)$/.exec(location.hash);
  if (given) {
    keepToken(plain(given[1]));
    history.replaceState(null, "", given[2] ? `#${given[2]}` : "#/search");
    return;
  }
  try {
    token = sessionStorage.getItem(KEPT) ?? "";
  } catch {
    token = "";
  }
}

export function keepToken(value) {
  token = value;
  try {
    sessionStorage.setItem(KEPT, value);
  } catch {
    // Storage is blocked: the token lasts until the page is closed.
  }
}

// `ask(refused)` resolves to a token, or null if the person gives none.
export function askForTokenWith(dialog) {
  ask = dialog;
}

function address(path, query) {
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value === null || value === undefined || value === "") continue;
    for (const each of Array.isArray(value) ? value : [value]) {
      url.searchParams.append(name, typeof each === "object" ? JSON.stringify(each) : each);
    }
  }
  return url;
}

async function send(method, path, { query, body, signal }) {
  const headers = { Accept: "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    const response = await fetch(address(path, query), {
      method,
      headers,
      signal,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      redirect: "error",
      cache: "no-store",
    });
    document.dispatchEvent(new Event("serverfound"));
    return response;
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    document.dispatchEvent(new Event("serverlost"));
    throw new ApiError(0, "NoAnswer", "The server does not answer. Is it still running?");
  }
}

async function answered(method, path, options) {
  for (let refused = false; ; refused = true) {
    const used = token;
    const response = await send(method, path, options);
    if (response.status !== 401 || ask === null) return response;
    const refusal = await fault(response);
    if (token !== used) continue;
    asking ??= ask(refused || used !== "").finally(() => {
      asking = null;
    });
    const given = await asking;
    if (given === null) throw refusal;
    keepToken(given);
  }
}

async function fault(response) {
  let told = null;
  let status = null;
  try {
    ({ error: told, status } = await response.json());
  } catch {
    // Not an answer of the API.
  }
  const message = told?.message ?? status ?? `The server answers ${response.status} ${response.statusText}`;
  return new ApiError(response.status, told?.type ?? "Error", message, told?.field ?? null);
}

export async function request(method, path, options = {}) {
  const response = await answered(method, path, options);
  if (!response.ok) throw await fault(response);
  const text = await response.text();
  return text === "" ? null : JSON.parse(text);
}

export async function plainText(path, options = {}) {
  const response = await answered("GET", path, options);
  if (!response.ok) throw await fault(response);
  return response.text();
}

export const get = (path, query, signal) => request("GET", path, { query, signal });
export const post = (path, body, signal) => request("POST", path, { body, signal });
export const patch = (path, body) => request("PATCH", path, { body });

export function ofMemory(id, rest = "") {
  return `v1/memories/${encodeURIComponent(id)}${rest}`;
}

// Whether the server is gone, which the banner of the page says.
export function unanswered(fault) {
  return fault?.type === "NoAnswer";
}

export function aborted(fault) {
  return fault?.name === "AbortError";
}
