import { OPERATIONS } from "./operations.js"

const TIMEOUT = 60_000

export class RecalliteError extends Error {
  constructor(status, { type = "ServerError", reason = null, field = null, message }) {
    super(message)
    Object.assign(this, { name: type, status, type, reason, field })
  }
}

const MEANT = { add: "remember", search: "recall", query: "recall", getAll: "list", delete: "forgetOne" }

function nearest(name, methods) {
  const lower = name.toLowerCase()
  const part = methods.find((method) => lower.length > 3 && method.toLowerCase().endsWith(lower))
  return MEANT[name] ?? part ?? (lower.length > 4 && methods.find((method) => edits(lower, method.toLowerCase()) <= 2))
}

function edits(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, i) => i)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++)
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (one[i - 1] !== other[j - 1]))
    row = next
  }
  return row[other.length]
}

export class Client {
  #url
  #headers
  #fetch
  #timeout

  constructor(url, { token, scope, fetch = globalThis.fetch, timeout = TIMEOUT } = {}) {
    this.#url = url.replace(/\/+$/, "")
    this.#headers = {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(scope && { "recallite-scope": encodeURIComponent(scope) }),
    }
    this.#fetch = fetch
    this.#timeout = timeout
  }

  static {
    for (const [name, operation] of Object.entries(OPERATIONS))
      this.prototype[name] = function (fields) {
        return this.#request(operation, fields)
      }
    // What no method is called, but nearly, or what is a method of a part: `explain` is `reviewExplain`.
    const get = (target, name, client) => {
      const near = typeof name === "string" && !(name in target) && nearest(name, Object.keys(OPERATIONS))
      if (near) throw new TypeError(`no method is called ${name}: use ${near}`)
      return Reflect.get(target, name, client)
    }
    Object.setPrototypeOf(this.prototype, new Proxy(Object.prototype, { get }))
  }

  async #request([method, path, names, kind], fields) {
    const rest = { ...fields }
    const take = (name) => {
      const value = rest[name]
      delete rest[name]
      return value
    }
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(take(name)))
    const query = new URLSearchParams()
    for (const name of names) {
      const value = take(name) ?? []
      for (const one of Array.isArray(value) ? value : [value])
        query.append(name, typeof one === "object" ? JSON.stringify(one) : String(one))
    }
    const request = { method, headers: { ...this.#headers }, signal: AbortSignal.timeout(this.#timeout) }
    if (kind === "bytes") request.body = take("data")
    if (kind === "json") request.body = JSON.stringify(rest)
    if (request.body !== undefined)
      request.headers["content-type"] = kind === "json" ? "application/json" : "application/octet-stream"
    else if (Object.keys(rest).length) throw new TypeError(`no field is called ${Object.keys(rest).join(", ")}`)
    return this.#answer(`${this.#url}${filled}${query.size ? `?${query}` : ""}`, request, kind)
  }

  async #answer(address, request, kind) {
    let response, text
    try {
      response = await this.#fetch(address, request)
      text = await response.text()
    } catch (fault) {
      const message = `${this.#url} does not answer: ${fault.cause?.message ?? fault.message}`
      throw new RecalliteError(0, { reason: "unreachable", message })
    }
    if (response.ok) return kind === "text" ? text : JSON.parse(text)
    let error
    try {
      error = JSON.parse(text).error
    } catch {
      // A proxy answers with a page of its own.
    }
    throw new RecalliteError(response.status, error ?? { message: `the status is ${response.status}` })
  }
}
