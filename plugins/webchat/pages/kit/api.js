import { forget, forgetAll, keep, recall, recallDevice } from './credential.js'
import { callParent, isFramed } from './framed.js'
import { askForOwnerKey } from './owner-key.js'

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

let credential = recall()
// A page that the browser kept alive shows what whoever signed out meanwhile has left.
addEventListener('pageshow', ({ persisted }) => {
  if (persisted && recall()?.key !== credential?.key) location.reload()
})

/** Uses this key from now on, on this page and the others of this tab. */
export function useKey(key) {
  credential = { key }
  keep(credential)
}

/** Whether the daemon was given a key or a sign-in. */
export const isSignedIn = () => credential !== undefined

/** Ends the sign-in and the device at the daemon too. Returns what is left to do. */
export async function signOut() {
  const { key, name } = credential ?? {}
  const device = recallDevice()
  forgetAll()
  credential = undefined
  const left = [
    name !== undefined &&
      (await endAt('POST', '/api/auth/logout', { key, body: {} }, (reason) => [
        `The daemon did not end your sign-in, which ends by itself: ${reason}`,
        'An operator can end it on the page Sign-ins.',
      ])),
    device &&
      (await endAt('DELETE', `/api/pairing/devices/${encodeURIComponent(device.device)}`, device, (reason) => [
        `This browser is still a paired device: ${reason}`,
        `With the API key you can remove it on the page Devices, by its id ${device.device}.`,
      ])),
  ].filter(Boolean)
  return left.length > 0 ? left.join(' ') : undefined
}

/** Returns what to say when it did not end; 401 means that it had ended before. */
async function endAt(method, path, { key, body }, explain) {
  try {
    await answerOf(await transmit(method, path, { key, body }))
    return undefined
  } catch (error) {
    return error.status === 401 ? undefined : explain(error.message).join(' ')
  }
}

/** Sends a request to the daemon that served this page, and returns the JSON of the answer. */
export async function call(method, path, body) {
  if (isFramed) return callParent({ method, path, body }, ApiError)
  return readAnswer(await send(method, path, { body }))
}

/** The same for a plugin, which reaches its own routes only. */
export async function callFor(plugin, { method, path, body }) {
  return readAnswer(await send(method, path, { body, plugin }))
}

const readAnswer = (response) => response.json().catch(() => undefined /* a proxy answered with a page of its own */)

/** The data of each server-sent event of a stream, as JSON. Ends with the stream; rejects when `signal` aborts. */
export async function* follow(path, signal, onOpen) {
  if (isFramed) throw new ApiError(501, 'A page in a frame cannot follow a stream.')
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

async function send(method, path, options) {
  const used = credential
  try {
    return await answerOf(await transmit(method, path, { ...options, key: used?.key }))
  } catch (error) {
    if (error.status === 401 && used) {
      forget(used.key)
      if (credential === used) credential = undefined
    }
    if (error.status !== 403 || method === 'GET' || used?.device === undefined) throw error
    const key = await askForOwnerKey(reasonFor(error, options.plugin), checkKey)
    if (key === undefined) throw error
    useKey(key)
    return answerOf(await transmit(method, path, { ...options, key }))
  }
}

/** A plugin can refuse in any words, such as “Your session has expired”: next to a field for the key it has none. */
const reasonFor = ({ message }, plugin) =>
  plugin === undefined
    ? message
    : `The plugin “${plugin}” refuses this to a paired device. Enter the key only if you meant to do it`

async function checkKey(key) {
  const response = await transmit('GET', '/api/pages', { key })
  if (response.status === 401) throw new ApiError(401, 'The daemon does not accept this key.')
  await answerOf(response)
}

function transmit(method, path, { key, plugin, body, signal }) {
  const headers = {}
  if (plugin !== undefined) headers['svc-plugin'] = plugin
  if (key !== undefined) headers.authorization = `Bearer ${key}`
  if (body !== undefined) headers['content-type'] = 'application/json'
  const init = { method, headers, signal, credentials: 'omit', cache: 'no-store', redirect: 'error' }
  return fetch(path, body === undefined ? init : { ...init, body: JSON.stringify(body) }).catch(() => {
    throw new ApiError(0, 'The daemon does not answer. Is it running?')
  })
}

async function answerOf(response) {
  if (response.ok) return response
  // A proxy answers with a page of its own.
  const error = (await response.json().catch(() => undefined))?.error
  const message = typeof error === 'string' ? error : error?.message
  throw new ApiError(response.status, message ?? `The daemon answered ${response.status}.`, error?.details)
}

/** Sends a request with the key, and returns the `Response` whatever its status; `init` is as for `fetch`. */
export async function request(method, path, { headers = {}, ...init } = {}) {
  const authorization = credential === undefined ? {} : { authorization: `Bearer ${credential.key}` }
  const fixed = { method, credentials: 'omit', cache: 'no-store', redirect: 'error' }
  return await fetch(path, { ...fixed, ...init, headers: { ...authorization, ...headers } }).catch((error) => {
    if (init.signal?.aborted) throw error
    throw new ApiError(0, 'The daemon does not answer. Is it running?')
  })
}
