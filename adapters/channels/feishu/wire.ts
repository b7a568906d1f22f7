import * as v from 'valibot'

/** Only the fields that are read. Source: https://open.feishu.cn/document/ (looked up in November 2026) */
const Text = v.nullish(v.string())
const Person = v.nullish(v.object({ open_id: Text }))

/**
 * What Feishu calls the app with. In a request to the webhook all of it can be encrypted; the check of the address is
 * not an event.
 */
export const Callback = v.object({
  encrypt: Text,
  type: Text,
  challenge: Text,
  token: Text,
  header: v.nullish(
    v.object({
      event_id: v.string(),
      event_type: v.string(),
      app_id: v.string(),
      token: Text,
      create_time: Text,
      tenant_key: Text,
    }),
  ),
  event: v.nullish(v.unknown()),
})
export type Callback = v.InferOutput<typeof Callback>
export type EventHeader = NonNullable<Callback['header']>

export const Mention = v.object({ key: v.string(), id: Person, name: Text })
export type Mention = v.InferOutput<typeof Mention>

/** Times are milliseconds in a text; the content is JSON in a text. */
export const MessageEvent = v.object({
  sender: v.object({ sender_id: Person, sender_type: v.string() }),
  message: v.object({
    message_id: v.string(),
    parent_id: Text,
    thread_id: Text,
    create_time: v.string(),
    chat_id: v.string(),
    chat_type: v.string(),
    message_type: v.string(),
    content: v.nullish(v.string(), ''),
    mentions: v.nullish(v.array(Mention), []),
  }),
})
export type MessageEvent = v.InferOutput<typeof MessageEvent>

/** What the button of a card says when it is pressed: the adapter put it there. */
export const Press = v.object({ answer: v.string(), thread: Text })
export const CardEvent = v.object({
  operator: v.object({ open_id: v.string() }),
  action: v.object({ value: Press }),
  context: v.object({ open_message_id: v.string(), open_chat_id: v.string() }),
})
export type CardEvent = v.InferOutput<typeof CardEvent>

/** The content of a message, by its type. All fields are optional: each type has some of them. */
export const Content = v.object({
  text: Text,
  title: Text,
  image_key: Text,
  file_key: Text,
  file_name: Text,
  name: Text,
  longitude: v.nullish(v.union([v.string(), v.number()])),
  latitude: v.nullish(v.union([v.string(), v.number()])),
  /** The lines of a rich text. */
  content: v.nullish(v.array(v.array(v.unknown()))),
})
export type Content = v.InferOutput<typeof Content>

/** A part of a line of a rich text. */
export const Part = v.object({
  tag: v.string(),
  text: Text,
  href: Text,
  user_id: Text,
  user_name: Text,
  image_key: Text,
  file_key: Text,
  language: Text,
  emoji_type: Text,
})
export type Part = v.InferOutput<typeof Part>

/** Every answer of the API. */
export const Failure = v.object({ code: v.number(), msg: Text })
export const Done = v.object({ code: v.literal(0) })
export const Token = v.object({ tenant_access_token: v.string(), expire: v.number() })
export const Bot = v.object({ bot: v.object({ open_id: v.string(), app_name: Text }) })
export type Bot = v.InferOutput<typeof Bot>['bot']
export const Endpoint = v.object({
  data: v.object({
    URL: v.string(),
    ClientConfig: v.nullish(v.object({ PingInterval: v.nullish(v.number()) })),
  }),
})
export const Sent = v.object({ data: v.object({ message_id: v.string() }) })
export const Reaction = v.object({ data: v.object({ reaction_id: v.string() }) })
export const Image = v.object({ data: v.object({ image_key: v.string() }) })
export const File = v.object({ data: v.object({ file_key: v.string() }) })
export const Chat = v.object({ data: v.object({ name: Text, chat_mode: Text }) })
export const User = v.object({ data: v.object({ user: v.object({ name: Text }) }) })
