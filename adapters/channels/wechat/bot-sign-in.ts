import { Refusal, UpstreamFailure } from 'svc/sdk'
import { pause } from 'svc/channels'
import type { ChannelLink, QrStep } from 'svc/channels'
import { SignInApi } from './bot-api.ts'
import { allowedBase, firstBase, writeSession } from './bot-session.ts'
import { CURSOR } from './bot-updates.ts'
import type { QrStatus } from './bot-wire.ts'
import type { WeChatConfig } from './config.ts'

/** WeChat forgets a code after five minutes. */
const QR_MS = 300_000
const MAX_CODES = 3
const PAUSE_MS = 1000

type Link = ChannelLink<WeChatConfig>

/** Links a bot: `pending` with each code, `scanned`, and `authenticated` when the token is stored. */
export async function* signInBot(link: Link): AsyncGenerator<QrStep> {
  if (link.config.mode !== 'bot')
    throw new Refusal('conflict', 'WeChat is in mode "official_account": set mode = "bot" to scan a code')
  const api = new SignInApi(link)
  for (let codes = 0; codes < MAX_CODES; codes++) {
    const { qrcode, qrcode_img_content: payload } = await api.code(firstBase(link.config))
    yield { status: 'pending', payload, expiresAt: new Date(link.now() + QR_MS).toISOString() }
    if (yield* follow(link, api, qrcode)) return
  }
  throw failed('nobody scanned the QR code in time')
}

/** The steps of one code. Returns whether it was confirmed. */
async function* follow(link: Link, api: SignInApi, code: string): AsyncGenerator<QrStep, boolean> {
  let base = firstBase(link.config)
  let isScanned = false
  while (true) {
    link.signal.throwIfAborted()
    const state = await stateOf(api, base, code)
    if (state.status === 'expired' || state.status === 'verify_code_blocked') return false
    if (state.status === 'confirmed') {
      await store(link, state)
      yield { status: 'authenticated' }
      return true
    }
    refuse(state)
    if (state.status === 'scaned_but_redirect') base = redirected(link.config, state.redirect_host)
    if (state.status !== 'wait' && !isScanned) {
      isScanned = true
      yield { status: 'scanned' }
    }
    await pause(link, PAUSE_MS, link.signal)
  }
}

/** A poll that nobody answered is one at which nothing happened. */
async function stateOf(api: SignInApi, base: string, code: string): Promise<QrStatus> {
  try {
    return await api.status(base, code)
  } catch (error) {
    if (error instanceof UpstreamFailure && error.reason === 'timeout') return { status: 'wait' }
    throw error
  }
}

function refuse({ status }: QrStatus): void {
  if (status === 'need_verifycode') throw failed('WeChat asks for a number that it shows, which cannot be entered here')
  if (status === 'binded_redirect') throw failed('this bot is linked already: remove it on the phone first')
}

function redirected(config: WeChatConfig, host: string | null | undefined): string {
  const base = allowedBase(`https://${host ?? ''}`, config)
  if (base === undefined)
    throw failed(`WeChat sends the sign-in to ${host ?? 'no host'}, which "api_hosts" does not name`)
  return base
}

async function store(link: Link, { bot_token: token, ilink_bot_id: bot, baseurl }: QrStatus): Promise<void> {
  if (!token || !bot) throw failed('WeChat confirmed the QR code without a token')
  const base = baseurl ? allowedBase(baseurl, link.config) : firstBase(link.config)
  if (base === undefined) throw failed(`WeChat sends the bot to ${baseurl}, which "api_hosts" does not name`)
  // The position belongs to the old session.
  await link.state.write(CURSOR, '')
  await writeSession(link, { token, base, bot })
}

function failed(why: string): UpstreamFailure {
  return new UpstreamFailure('wechat', `wechat: ${why}`, { reason: 'auth', retry: 'never' })
}
