import type { xml } from '@xmpp/client'

/** An element of the stream. */
export type Element = ReturnType<typeof xml>
