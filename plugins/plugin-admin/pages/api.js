/** What the daemon refused, in its words. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message)
    this.name = 'ApiError'
    this.status = status
  }
}

/** The key that the chat page remembers on this device at the user's request; else in memory only. */
let key = rememberedKey()

export function useKey(entered) {
  key = entered
}

/** Sends a request to the daemon that served this page, and returns the JSON of the answer. */
export async function call(method, path, body) {
  const headers = {}
  if (key !== undefined) headers.authorization = `Bearer ${key}`
  if (body !== undefined) headers['content-type'] = 'application/json'
  const init = { method, headers, credentials: 'omit', cache: 'no-store', redirect: 'error' }
  const response = await fetch(path, body === undefined ? init : { ...init, body: JSON.stringify(body) }).catch(() => {
    throw new ApiError(0, 'The daemon does not answer. Is it running?')
  })
  const answer = await response.json().catch(() => undefined /* a proxy answered with a page of its own */)
  if (response.ok) return answer
  throw new ApiError(response.status, answer?.error?.message ?? `The daemon answered ${response.status}.`)
}

function rememberedKey() {
  try {
    const found = JSON.parse(localStorage.getItem('svc.remembered') ?? 'null')?.key
    return typeof found === 'string' ? found : undefined
  } catch {
    return undefined // Storage may be switched off.
  }
}
