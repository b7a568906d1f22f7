import type { Transport } from '@modelcontextprotocol/client'

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
          last = last.then(() => receive(message, extra))
        })
    },
  })
  return transport
}
