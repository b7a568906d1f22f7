import * as v from 'valibot'

/**
 * Only the fields that are read. Source: https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-api-reference
 * and the models of github.com/microsoft/teams.ts (looked up in November 2026)
 */
const Text = v.nullish(v.string())

const Account = v.object({ id: v.string(), name: Text, aadObjectId: Text, role: Text })

export const Activity = v.object({
  type: v.string(),
  id: Text,
  timestamp: Text,
  serviceUrl: v.string(),
  channelId: v.string(),
  from: v.nullish(Account),
  recipient: v.nullish(Account),
  conversation: v.nullish(v.object({ id: v.string(), conversationType: Text, name: Text, tenantId: Text })),
  text: Text,
  replyToId: Text,
  /** Each is read by itself: one that cannot be read must not hold up the message. */
  entities: v.nullish(v.array(v.unknown()), []),
  attachments: v.nullish(v.array(v.unknown()), []),
  channelData: v.nullish(
    v.object({
      eventType: v.nullish(v.unknown()),
      tenant: v.nullish(v.object({ id: v.string() })),
      team: v.nullish(v.object({ id: v.string() })),
      channel: v.nullish(v.object({ id: v.string(), name: Text })),
    }),
  ),
  value: v.nullish(v.unknown()),
})
export type Activity = v.InferOutput<typeof Activity>

export const Mention = v.object({
  type: v.literal('mention'),
  mentioned: v.object({ id: v.string(), name: Text }),
  text: Text,
})

/** A file of a personal chat. Its address needs no credentials, and holds for some minutes. */
export const FileDownload = v.object({
  contentType: v.literal('application/vnd.microsoft.teams.file.download.info'),
  name: v.string(),
  content: v.object({ downloadUrl: v.string() }),
})
/** A picture in the text. Its address is one of the Bot Connector. */
export const InlineImage = v.object({
  contentType: v.pipe(v.string(), v.startsWith('image/')),
  contentUrl: v.pipe(v.string(), v.maxLength(2000)),
  name: Text,
})

/** What a button of ours sends. */
export const Press = v.object({ svc: v.string() })

export const Sent = v.object({ id: v.string() })
export const Failure = v.union([
  v.object({ error: v.object({ code: Text, message: Text }) }),
  v.object({ message: v.string() }),
])

/** Source: https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow */
export const Token = v.object({ access_token: v.string(), expires_in: v.number() })
export const TokenFailure = v.object({ error: v.string(), error_description: Text })

/** Source: https://learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-authentication */
export const Metadata = v.object({ jwks_uri: v.string() })
export const Keys = v.object({ keys: v.array(v.unknown()) })
export const Key = v.looseObject({ kid: v.string(), kty: v.string(), endorsements: v.nullish(v.array(v.string())) })
