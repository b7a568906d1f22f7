// The interface of chat channels, as `svc/channels`; beside it they see `svc/sdk`.

// A channel and its adapter
export { Channels, defineAdapter, defineChannel } from './channel.ts'
export type {
  ChannelAdapter,
  ChannelCapabilities,
  ChannelConnection,
  ChannelDeclaration,
  ChannelLink,
  ChannelRegistry,
  ChannelState,
  ConnectionEnd,
  Dialect,
  QrStep,
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
