/**
 * What a realistic turn costs any server on Node: the question by HTTP, the request with the history and the tools, the
 * stream of the answer read and sent on, a call of a tool, and the rows of `durable-turn.ts` in a synced commit before
 * each request and before each answer. `TOOLS` is the list of tools as the provider gets it. No routes, no plugins, no
 * limits, no failures.
 */
import { randomUUID } from 'node:crypto'
import { Agent, createServer, request as send } from 'node:http'
import type { ServerResponse } from 'node:http'
import { StringDecoder } from 'node:string_decoder'
import { addToAudit, durable, end, message, turn, usage } from './turn-rows.ts'

const HISTORY = 30
const upstream = new URL(process.env['UPSTREAM'] ?? '')
const tools = process.env['TOOLS'] ?? '[]'
const agent = new Agent({ keepAlive: true, maxSockets: 256 })
const system = 'You are a helpful assistant of a small company. Be brief, be exact, and say when you do not know.'
const head = `{"model":"bench","stream":true,"tools":${tools},"messages":[${JSON.stringify({ role: 'system', content: system })}`

interface Delta {
  readonly content?: string | null
  readonly tool_calls?: readonly unknown[]
}
/** Asks the provider; `onText` gets the text of each piece. Settles with whether a tool was called. */
function complete(history: readonly string[], onText: (text: string) => void): Promise<boolean> {
  const body = Buffer.from(`${head},${history.join(',')}]}`)
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const { hostname: host, port } = upstream
    send({ host, port, path: '/v1/chat/completions', method: 'POST', agent, headers }, (answer) => {
      const decoder = new StringDecoder('utf8')
      let rest = ''
      let calls = false
      answer
        .on('data', (piece: Buffer) => {
          const lines = (rest + decoder.write(piece)).split('\n')
          rest = lines.pop() ?? ''
          let text = ''
          for (const line of lines) {
            if (!line.startsWith('data: {')) continue
            const { choices } = JSON.parse(line.slice(6)) as { choices: readonly { delta: Delta }[] }
            text += choices[0]?.delta.content ?? ''
            calls ||= choices[0]?.delta.tool_calls !== undefined
          }
          if (text !== '') onText(text)
        })
        .on('end', () => resolve(calls))
    })
      .on('error', reject)
      .end(body)
  })
}

const sessions = new Map<string, { readonly history: string[]; seq: number }>()
async function take(path: string, body: string, response: ServerResponse): Promise<void> {
  const { message: said } = JSON.parse(body) as { message: string }
  const [id, at] = [randomUUID(), new Date().toISOString()]
  let session = sessions.get(path)
  if (!session) sessions.set(path, (session = { history: [], seq: 0 }))
  const { history } = session
  const add = (value: object): void => {
    history.push(JSON.stringify(value))
    if (history.length > HISTORY) history.shift()
  }
  const write = (role: string, text: string): unknown => message.run(path, ++session.seq, id, role, text, at)
  await durable(() => {
    turn.run(id, path, at)
    write('user', said)
  })
  add({ role: 'user', content: said })
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  let text = ''
  const onText = (delta: string): void => {
    text += delta
    response.write(`event: chunk\ndata: ${JSON.stringify({ type: 'chunk', content: delta, done: false })}\n\n`)
  }
  if (await complete(history, onText)) {
    const call = { id, type: 'function', function: { name: 'system_time', arguments: '{}' } }
    await durable(() => write('assistant', JSON.stringify(call)))
    add({ role: 'assistant', content: null, tool_calls: [call] })
    await durable(() => write('tool', at))
    add({ role: 'tool', tool_call_id: id, content: at })
    await complete(history, onText)
  }
  add({ role: 'assistant', content: text })
  await durable(() => {
    const now = new Date().toISOString()
    write('assistant', text)
    usage.run(now, path, id, 'bench', 10, 4)
    end.run(now, id)
    addToAudit(now, path, `turn ${id} done`)
  })
  response.end(`event: done\ndata: ${JSON.stringify({ type: 'done', done: true, turn_id: id })}\n\n`)
}

createServer((request, response) => {
  if (request.method === 'GET') {
    response.end('ok')
    return
  }
  let body = ''
  request
    .setEncoding('utf8')
    .on('data', (piece: string) => {
      body += piece
    })
    .on('end', () => {
      take(request.url ?? '', body, response).catch(() => response.destroy())
    })
}).listen(Number(process.env['PORT']), '127.0.0.1')
