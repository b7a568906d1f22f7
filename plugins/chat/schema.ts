import * as v from 'valibot'

const message = v.pipe(v.string('message: Expected text'), v.check((text) => text.trim() !== '', 'must not be empty'))
const options = {
  session_id: v.optional(v.pipe(v.string(), v.uuid('Invalid session ID'))),
  thinking: v.optional(v.boolean()),
}
export const NewMessage = v.object({ message, ...options })
export type NewMessage = v.InferOutput<typeof NewMessage>
/** The alternate listing takes the message in the body of a GET, or in the query for clients that cannot send one. */
export const OptionalMessage = v.optional(v.object({ message: v.optional(message), ...options }))
export const MessageQuery = v.object({ message: v.optional(message), session_id: options.session_id })
export const Stopped = v.object({ status: v.literal('stopped'), message: v.string() })
