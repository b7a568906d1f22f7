/** The floor of tool calls: the SDK's own server, one session, nothing kept. */
import { McpServer, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { createServer } from 'node:http'
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'

const sessions = new Map()
async function open() {
  const server = new McpServer({ name: 'floor', version: '1.0.0' })
  server.registerTool('system_time', { description: 'The time.' }, () => ({
    content: [{ type: 'text', text: new Date().toISOString() }],
  }))
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => void sessions.set(id, transport),
  })
  await server.connect(transport)
  return transport
}

createServer(async (request, response) => {
  if (request.url === '/') return response.writeHead(200, { 'content-length': 2 }).end('ok')
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  const headers = new Headers(request.headers)
  const transport = sessions.get(request.headers['mcp-session-id']) ?? (await open())
  const answer = await transport.handleRequest(
    new Request(`http://127.0.0.1${request.url}`, {
      method: request.method,
      headers,
      ...(body.length > 0 && { body }),
    }),
  )
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  if (answer.body) Readable.fromWeb(answer.body).pipe(response)
  else response.end()
}).listen(Number(process.env['PORT']), '127.0.0.1')
