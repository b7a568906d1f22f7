import { json } from 'node:stream/consumers'
import { check } from './checks.mjs'
import { send } from './send.mjs'

const MAX_SHOWN = 8000

/** The token goes to one host, which the model does not choose. */
function authorization(url) {
  const { API_TESTER_TOKEN: token, API_TESTER_HOST: host } = process.env
  if (!token || !host)
    throw new Error(
      'auth: API_TESTER_TOKEN and API_TESTER_HOST are not set: a person sets these variables of the skill',
    )
  if (url.host !== host.toLowerCase()) throw new Error(`auth: the token is for ${host}, not for ${url.host}`)
  if (url.protocol !== 'https:') throw new Error('auth: the token is sent over https only')
  return { authorization: `Bearer ${token}` }
}

/** Values of cookies are credentials. */
function showHeaders(headers) {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      name === 'set-cookie' ? value.map((cookie) => cookie.replace(/=[^;]*/, '=…')) : value,
    ]),
  )
}

function parse(text) {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** Address, method, headers and body of what is sent. */
function toSend({ url: address, method = 'GET', headers = {}, json: value, body, auth, timeout_secs: secs = 20 }) {
  if (!URL.canParse(address)) throw new Error(`"${address}" is no address`)
  const url = new URL(address)
  if (url.username !== '' || url.password !== '') throw new Error('url: credentials do not belong into an address')
  if (value !== undefined && body !== undefined) throw new Error('give json or body, not both')
  const isNamed = (name) => Object.keys(headers).some((each) => each.toLowerCase() === name)
  return {
    url,
    method,
    body: value === undefined ? body : JSON.stringify(value),
    headers: {
      accept: '*/*',
      'user-agent': 'svc-api-tester',
      ...(value !== undefined && !isNamed('content-type') && { 'content-type': 'application/json' }),
      ...headers,
      ...(auth === true && authorization(url)),
    },
    timeoutMs: secs * 1000,
  }
}

async function request({ expect, ...input }) {
  const answer = await send(toSend(input))
  const { headers, text, ms, status, isWhole } = answer
  const parsed = parse(text)
  const checks = expect === undefined ? undefined : check(expect, { ...answer, parsed })
  const isShort = text.length <= MAX_SHOWN
  const isJson = parsed !== undefined && /\bjson\b/.test(headers['content-type'] ?? '')
  return {
    ...(checks && { passed: checks.every(({ passed }) => passed), checks }),
    status,
    ms,
    headers: showHeaders(headers),
    ...(headers.location !== undefined && { note: 'the redirect was not followed' }),
    bytes: Buffer.byteLength(text),
    ...(isJson && isShort ? { json: parsed.value } : { body: text.slice(0, MAX_SHOWN) }),
    ...(!isShort && { cut: `the first ${MAX_SHOWN} of ${text.length} characters` }),
    ...(!isWhole && { incomplete: 'reading ended after 1 MB' }),
  }
}

try {
  const { input } = await json(process.stdin)
  console.log(JSON.stringify(await request(input)))
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
