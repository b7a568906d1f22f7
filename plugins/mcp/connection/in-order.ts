import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { checkDepth, messageOf } from 'svc/internal'

/**
 * Hands each message over when the one before is dealt with. The SDK deals with an answer at once and with a
 * notification a moment later, so the progress that comes right before an answer would be lost.
 */
export function deliverInOrder<T extends Transport>(transport: T): T {
  let last = Promise.resolve()
  let handler: Transport['onmessage']
  Object.defineProperty(transport, 'onmessage', {
    get: () => handler,
    set(receive: Transport['onmessage']) {
      handler =
        receive &&
        ((message, extra) => {
          const checked = check(message)
          last = last.then(() => receive(checked, extra))
        })
    },
  })
  return transport
}

/** What is nested too deeply is refused before anything walks it: its request fails, anything else is only noted. */
function check(message: JSONRPCMessage): JSONRPCMessage {
  try {
    checkDepth(message)
    return message
  } catch (error) {
    const id = 'method' in message ? undefined : message.id
    if (id === undefined)
      return { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data: messageOf(error) } }
    return {
      jsonrpc: '2.0',
      id,
      error: { code: -32_603, message: `the server sent a message that is ${messageOf(error)}` },
    }
  }
}
