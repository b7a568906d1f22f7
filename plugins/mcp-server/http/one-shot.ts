import type { JSONRPCMessage, JSONRPCRequest, Server, Transport } from '@modelcontextprotocol/server'

/** The transport of one request without a session: its answer is plain JSON, and nothing can be said before it. */
class OneShotTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: Transport['onmessage']
  readonly answer = Promise.withResolvers<JSONRPCMessage>()

  start(): Promise<void> {
    return Promise.resolve()
  }
  send(message: JSONRPCMessage): Promise<void> {
    if (!('method' in message)) this.answer.resolve(message)
    else if ('id' in message) return Promise.reject(new Error('a client without a session cannot be asked'))
    return Promise.resolve()
  }
  close(): Promise<void> {
    this.onclose?.()
    return Promise.resolve()
  }
}

/** Answers one request by a server of its own. Rejects with the reason of the signal. */
export async function answerOnce(
  server: Server,
  message: JSONRPCRequest,
  signal: AbortSignal,
): Promise<JSONRPCMessage> {
  const transport = new OneShotTransport()
  const abort = (): void => transport.answer.reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  try {
    await server.connect(transport)
    transport.onmessage?.(message)
    return await transport.answer.promise
  } finally {
    signal.removeEventListener('abort', abort)
    await server.close()
  }
}
