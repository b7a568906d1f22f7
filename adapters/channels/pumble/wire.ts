import * as v from 'valibot'

/**
 * Only the fields that are read. Source: docs/triggers-reference.md and pumble-sdk/src of
 * github.com/CAKE-com/pumble-node-sdk (looked up in November 2026)
 */
const Text = v.nullish(v.string())

/** What is common to all that Pumble sends. The body of an event is JSON in a text. */
export const Envelope = v.object({
  messageType: v.string(),
  eventType: Text,
  workspaceId: v.string(),
  body: Text,
})

/** Its names are short: message, channel, thread root, author, text. */
export const Posted = v.object({
  mId: v.string(),
  wId: Text,
  cId: v.string(),
  trId: Text,
  aId: v.string(),
  tx: Text,
  /** Of messages of the system only. */
  st: Text,
  tsm: v.nullish(v.unknown()),
  f: v.nullish(v.array(v.unknown()), []),
  /** Who is mentioned directly. */
  md: v.nullish(v.array(v.unknown()), []),
  e: v.nullish(v.boolean()),
  eph: v.nullish(v.boolean()),
})
export type Posted = v.InferOutput<typeof Posted>

export const SlashCommand = v.object({
  messageType: v.literal('SLASH_COMMAND'),
  slashCommand: v.string(),
  text: Text,
  userId: v.string(),
  channelId: v.string(),
  threadRootId: Text,
  triggerId: v.string(),
})
export type SlashCommand = v.InferOutput<typeof SlashCommand>

/** The press of a button. `payload` is JSON in a text. */
export const Interaction = v.object({
  messageType: v.literal('BLOCK_INTERACTION'),
  sourceType: v.literal('MESSAGE'),
  sourceId: v.string(),
  userId: v.string(),
  channelId: v.string(),
  onAction: v.string(),
  payload: v.string(),
  triggerId: v.string(),
})
export type Interaction = v.InferOutput<typeof Interaction>
export const ButtonValue = v.object({ value: v.string() })

export const Identity = v.object({
  workspaceId: v.string(),
  workspaceName: Text,
  workspaceUserId: v.string(),
  workspaceUserName: Text,
})
export type Identity = v.InferOutput<typeof Identity>
export const Channel = v.object({
  channel: v.object({ id: v.string(), channelType: v.string(), name: Text }),
  users: v.nullish(v.array(v.string()), []),
})
export type Channel = v.InferOutput<typeof Channel>
export const User = v.object({
  name: Text,
  email: Text,
  isPumbleBot: v.nullish(v.boolean()),
  isAddonBot: v.nullish(v.boolean()),
})
export type User = v.InferOutput<typeof User>

export const File = v.object({
  id: v.string(),
  name: Text,
  mimeType: Text,
  path: v.string(),
  size: v.nullish(v.number()),
})
export type File = v.InferOutput<typeof File>
export const Message = v.object({ id: v.string(), files: v.nullish(v.array(v.unknown()), []) })

export const Sent = v.object({ id: v.string() })
export const UploadToken = v.object({ token: v.string(), remoteProductToken: Text })
/** It is handed back as it came. */
export const Uploaded = v.looseObject({ signature: v.string() })
export const Failure = v.object({ message: v.string() })
