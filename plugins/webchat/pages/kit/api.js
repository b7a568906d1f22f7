/** What the daemon refused, in its words. */
export class ApiError extends Error {
  constructor(status, message, details) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    /** The wrong fields of a request, if the daemon named them: `{ path, message }` each. */
    this.issues = details?.issues ?? []
  }
}

/** Where the chat page keeps the key at the user's request. */
const PLACE = 'svc.remembered'
/** Of this page only, unless the user has it remembered. */
let key = rememberedKey()

/** Uses this key from now on, and stores it on this device if it is to be remembered. */
export function useKey(entered, isRemembered = false) {
  key = entered
  if (!isRemembered) return
  try {
    localStorage.setItem(PLACE, JSON.stringify({ key }))
  } catch {
    /* Storage may be switched off: then it stays in memory. */
  }
}

/** Sends a request to the daemon that served this page, and returns the JSON of the answer. */
export async function call(method, path, body) {
  const response = await send(method, path, { body })
  return response.json().catch(() => undefined /* a proxy answered with a page of its own */)
}

/** The data of each server-sent event of a stream, as JSON. Ends with the stream; rejects when `signal` aborts. */
export async function* follow(path, signal, onOpen) {
  const response = await send('GET', path, { signal })
  onOpen?.()
  for await (const line of linesOf(response.body)) if (line.startsWith('data: ')) yield JSON.parse(line.slice(6))
}

async function* linesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const lines = (text + value).split('\n')
      text = lines.pop()
      yield* lines
    }
  } finally {
    await reader.cancel().catch(() => undefined /* it was aborted */)
  }
}

async function send(method, path, { body, signal }) {
  const headers = {}
  if (key !== undefined) headers.authorization = `Bearer ${key}`
  if (body !== undefined) headers['content-type'] = 'application/json'
  const init = { method, headers, signal, credentials: 'omit', cache: 'no-store', redirect: 'error' }
  const response = await fetch(path, body === undefined ? init : { ...init, body: JSON.stringify(body) }).catch(() => {
    throw new ApiError(0, 'The daemon does not answer. Is it running?')
  })
  if (response.ok) return response
  // A proxy answers with a page of its own.
  const error = (await response.json().catch(() => undefined))?.error
  const message = typeof error === 'string' ? error : error?.message
  throw new ApiError(response.status, message ?? `The daemon answered ${response.status}.`, error?.details)
}

function rememberedKey() {
  try {
    const found = JSON.parse(localStorage.getItem(PLACE) ?? 'null')?.key
    return typeof found === 'string' ? found : undefined
  } catch {
    return undefined // Storage may be switched off.
  }
}
