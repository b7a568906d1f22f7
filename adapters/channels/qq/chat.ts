import { UpstreamFailure } from 'svc/sdk'

/** The four kinds of chats, each with paths of its own. */
const PATHS = { user: '/v2/users', group: '/v2/groups', channel: '/channels', dm: '/dms' } as const
export type ChatKind = keyof typeof PATHS

/** A private chat or a group, or a text channel or direct messages of a server. */
export interface Chat {
  readonly kind: ChatKind
  readonly id: string
  /** Where its messages are, as in `/v2/users/<openid>`. */
  readonly path: string
  /** Servers, which QQ calls channels, have an API that is older than that of chats. */
  readonly isOfServer: boolean
}

export const chatId = (kind: ChatKind, id: string): string => `${kind}:${id}`

export function chatOf(text: string): Chat {
  const [, kind = '', id = ''] = /^(user|group|channel|dm):(.+)$/s.exec(text) ?? []
  if (!isKind(kind))
    throw new UpstreamFailure('qq', `${text} is no chat of QQ: give user:<openid>, group:<openid> or channel:<id>`, {
      reason: 'invalid_request',
      retry: 'never',
    })
  const isOfServer = kind === 'channel' || kind === 'dm'
  return { kind, id, path: `${PATHS[kind]}/${encodeURIComponent(id)}`, isOfServer }
}

const isKind = (kind: string): kind is ChatKind => Object.hasOwn(PATHS, kind)
