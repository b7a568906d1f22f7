// The interface of chat channels, as `svc/channels`; beside it they see `svc/sdk`.

// A channel and its adapter
export { Channels, defineAdapter, defineChannel } from './channel.ts'
export type {
  ChannelAdapter,
  ChannelCapabilities,
  ChannelConnection,
  ChannelDeclaration,
  ChannelLink,
  ChannelNetwork,
  ChannelRegistry,
  ChannelSetup,
  ChannelState,
  ConnectionEnd,
  Dialect,
  ProgramRequest,
  QrStep,
  StartProgram,
  WebhookAnswer,
  WebhookRequest,
} from './channel.ts'

// Messages
export type {
  AttachmentInfo,
  InboundAttachment,
  OutboundAttachment,
  Destination,
  InboundMessage,
  JsonObject,
  OutboundMessage,
  SentMessage,
} from './message.ts'

// What adapters have in common
export { AccessToken } from './access-token.ts'
export type { IssuedToken } from './access-token.ts'
export { ApiClient, trimSlashes } from './api-client.ts'
export type { ApiClientOptions, ApiRequest } from './api-client.ts'
export { ignoreMissing, reasonOfStatus, toFailure, unlessRefused } from './api-failure.ts'
export type { ApiAnswer, ApiError, ErrorFinder } from './api-failure.ts'
export { attachmentKind } from './attachment-kind.ts'
export { endOf, pause, pollInBackground, runInBackground, waitForEnd } from './background.ts'
export type { Background } from './background.ts'
export { breakMentions } from './break-mentions.ts'
export { EMOJI_NAMES, emojiName, findEmojiName } from './emoji-names.ts'
export { EventConnection } from './event-connection.ts'
export type { EventConnectionOptions } from './event-connection.ts'
export { Gateway, GatewayFrame } from './gateway.ts'
export type { GatewayCloseCodes, GatewayDeps } from './gateway.ts'
export { GatewaySession } from './gateway-session.ts'
export { findGraphError } from './graph-error.ts'
export { answerGraphRequest } from './graph-webhook.ts'
export type { GraphSecrets } from './graph-webhook.ts'
export { htmlToText } from './html-text.ts'
export { isoTime } from './iso-time.ts'
export { NameCache } from './name-cache.ts'
export { KeptTokens } from './kept-tokens.ts'
export type { KeptTokensOptions } from './kept-tokens.ts'
export { PartialSends } from './partial-sends.ts'
export { bearerToken, PublishedKeys, verifyToken } from './signed-token.ts'
export type { FindKey, TokenClaims, TokenRules } from './signed-token.ts'
export { tlsFields, toTlsOptions } from './tls-fields.ts'
export { readWebhookBody } from './webhook-body.ts'
export { signContent, verifySecret, verifySignature, verifyTimestamp } from './webhook-signature.ts'
export type { SignatureScheme } from './webhook-signature.ts'
export { FrameSocket } from './frame-socket.ts'
export type { FrameCodec, FrameHandler, FrameWork, SocketEnd } from './frame-socket.ts'
export { JsonSocket, keepAlive, within } from './json-socket.ts'
export { readUntil } from './read-until.ts'
export { RecentMap } from './recent-map.ts'
export { SavedPosition } from './saved-position.ts'
