import * as v from 'valibot'

/** Only the fields that are read. Source: https://gotify.net/api-docs (server 2.9, looked up in November 2026) */
const Id = v.pipe(v.number(), v.safeInteger(), v.minValue(0))

export const Message = v.object({
  id: Id,
  appid: Id,
  message: v.string(),
  title: v.nullish(v.string()),
  date: v.string(),
  extras: v.nullish(v.record(v.string(), v.unknown())),
})
export type Message = v.InferOutput<typeof Message>

/** The newest come first. `since` is the id before which the next page begins; 0 on the last one. */
export const MessagePage = v.object({ messages: v.array(v.unknown()), paging: v.object({ since: Id }) })

export const Sent = v.object({ id: Id })
export const ApplicationList = v.array(v.object({ id: Id, name: v.string() }))
export const User = v.object({ name: v.string() })
export const Failure = v.object({ errorDescription: v.string() })
