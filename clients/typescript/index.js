import { OPERATIONS } from "./operations.js"

const TIMEOUT = 60_000

export class RecalliteError extends Error {
  constructor(status, { type = "ServerError", reason = null, field = null, message }) {
    super(message)
    Object.assign(this, { name: type, status, type, reason, field })
  }
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
