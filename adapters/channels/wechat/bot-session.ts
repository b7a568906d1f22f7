import * as v from 'valibot'
import { readJson, UpstreamFailure } from 'svc/sdk'
import { trimSlashes } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { WeChatConfig } from './config.ts'

const KEY = 'bot-session'
const BASE_URL = 'https://ilinkai.weixin.qq.com'
const Stored = v.object({ token: v.string(), base: v.string(), bot: v.string() })

/** What a scanned QR code gives. */
export type BotSession = v.InferOutput<typeof Stored>
type Link = Pick<ChannelLink<WeChatConfig>, 'config' | 'secrets'>

/** Where a QR code is asked for. */
export function firstBase({ base_url: base = BASE_URL }: WeChatConfig): string {
  return trimSlashes(base)
}

/** Throws `auth` where no phone has scanned a code. */
export async function readSession(link: Link): Promise<BotSession> {
  const stored = await link.secrets.read(KEY)
  if (stored) return v.parse(Stored, readJson(stored))
  const { token } = link.config
  if (token !== undefined) return { token, base: firstBase(link.config), bot: 'bot' }
  throw new UpstreamFailure('wechat', 'wechat: no phone is linked: start the QR code and scan it', {
    reason: 'auth',
    retry: 'never',
  })
}

export async function writeSession(link: Link, session: BotSession): Promise<void> {
  await link.secrets.write(KEY, JSON.stringify(session))
}

export async function forgetSession(link: Link): Promise<void> {
  await link.secrets.write(KEY, '')
}

/**
 * The address that WeChat names to go on at, with the token: one of its own hosts, or of the operator's choice.
 * `undefined` for others.
 */
export function allowedBase(url: string, config: WeChatConfig): string | undefined {
  if (!URL.canParse(url)) return undefined
  const { origin, protocol, hostname, username, pathname } = new URL(url)
  const isOwn = origin === new URL(firstBase(config)).origin
  const isTencent = protocol === 'https:' && (hostname === 'weixin.qq.com' || hostname.endsWith('.weixin.qq.com'))
  const isChosen = protocol === 'https:' && config.api_hosts.includes(hostname)
  return username === '' && (isOwn || isTencent || isChosen) ? trimSlashes(origin + pathname) : undefined
}
