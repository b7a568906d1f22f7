import { setTimeout as delay } from 'node:timers/promises'
import type { FakePlatform, PlatformRequest } from './platform.ts'

const RETRY_MS = 250
const MAX_TRIES = 400
type Start = () => Promise<FakePlatform>

/** How to start a platform of every channel: a fake, or a real server where there is one. */
export const platforms: Readonly<Record<string, Start>> = {
  bluesky: async () => (await import('./bluesky.ts')).FakeBluesky.start(),
  dingtalk: async () => (await import('./dingtalk.ts')).startFakeDingTalk(),
  discord: async () => (await import('./discord.ts')).startFakeDiscord(),
  discourse: async () => (await import('./discourse.ts')).FakeDiscourse.start(),
  email: async () => {
    const { MailPlatform, startDovecot } = await import('./email.ts')
    return onServer(await startDovecot(), (server) => MailPlatform.start(server))
  },
  feishu: async () => (await import('./feishu.ts')).startFakeFeishu(),
  flock: async () => (await import('./flock.ts')).FakeFlock.start(),
  gitter: async () => (await import('./gitter.ts')).startFakeGitter(),
  google_chat: async () => (await import('./google-chat.ts')).FakeGoogleChat.start(),
  gotify: async () => (await import('./gotify.ts')).FakeGotify.start(),
  guilded: async () => (await import('./guilded.ts')).startFakeGuilded(),
  irc: async () => {
    const { NgircdPlatform, startNgircd } = await import('./irc.ts')
    return onServer(await startNgircd(), (server) => NgircdPlatform.start(server))
  },
  keybase: async () => (await import('./keybase.ts')).FakeKeybase.start(),
  line: async () => (await import('./line.ts')).FakeLine.start(),
  linkedin: async () => (await import('./linkedin.ts')).FakeLinkedIn.start(),
  mastodon: async () => (await import('./mastodon.ts')).startFakeMastodon(),
  matrix: async () => (await import('./matrix.ts')).startFakeMatrix(),
  mattermost: async () => (await import('./mattermost.ts')).startFakeMattermost(),
  messenger: async () => (await import('./messenger.ts')).FakeMessenger.start(),
  mqtt: async () => {
    const { MosquittoPlatform, startMosquitto } = await import('./mqtt.ts')
    return onServer(await startMosquitto(), (server) => MosquittoPlatform.start(server, 'v5'))
  },
  mumble: async () => {
    const { MurmurPlatform, startMurmur } = await import('./mumble.ts')
    return onServer(await startMurmur(), (server) => MurmurPlatform.start(server))
  },
  nextcloud: async () => (await import('./nextcloud.ts')).startFakeNextcloudBot(),
  nostr: async () => (await import('./nostr.ts')).FakeNostr.start(),
  ntfy: async () => (await import('./ntfy.ts')).FakeNtfy.start(),
  pumble: async () => (await import('./pumble.ts')).FakePumble.start(),
  qq: async () => (await import('./qq.ts')).startFakeQq(),
  reddit: async () => (await import('./reddit.ts')).FakeReddit.start(),
  revolt: async () => (await import('./revolt.ts')).startFakeRevolt(),
  rocketchat: async () => (await import('./rocketchat.ts')).startFakeRocketChat(),
  signal: async () => (await import('./signal.ts')).FakeSignalDaemon.start(),
  slack: async () => (await import('./slack.ts')).startFakeSlack(),
  teams: async () => (await import('./teams.ts')).FakeTeams.start(),
  telegram: async () => (await import('./telegram.ts')).FakeTelegram.start(),
  threema: async () => (await import('./threema.ts')).FakeThreema.start(),
  twist: async () => (await import('./twist.ts')).FakeTwist.start(),
  twitch: async () => (await import('./twitch.ts')).FakeTwitch.start(),
  viber: async () => (await import('./viber.ts')).FakeViber.start(),
  webex: async () => (await import('./webex.ts')).FakeWebex.start(),
  webhook: async () => (await import('./webhook.ts')).FakeWebhook.start(),
  wechat: async () => (await import('./wechat.ts')).FakeWeChat.start(),
  wecom: async () => (await import('./wecom-bot.ts')).startFakeWeComBot(),
  whatsapp: async () => (await import('./whatsapp.ts')).FakeWhatsApp.start(),
  xmpp: async () => {
    const { ProsodyPlatform, startProsody } = await import('./xmpp.ts')
    return onServer(await startProsody(), (server) => ProsodyPlatform.start(server))
  },
  zulip: async () => (await import('./zulip.ts')).FakeZulip.start(),
}

/** The server ends with the platform. */
async function onServer<S extends AsyncDisposable>(
  server: S,
  start: (server: S) => Promise<FakePlatform>,
): Promise<FakePlatform> {
  const platform = await start(server)
  const end = platform[Symbol.asyncDispose].bind(platform)
  platform[Symbol.asyncDispose] = async () => {
    await end()
    await server[Symbol.asyncDispose]()
  }
  return platform
}

/**
 * Brings a request to the webhook of a daemon, as platforms do: again and again until it is acknowledged or refused.
 * `url` is where the daemon is now.
 */
export async function deliverUntilTaken(
  url: () => string | Promise<string>,
  channel: string,
  { method, query, headers, body }: PlatformRequest,
): Promise<{ readonly status: number; readonly body: string }> {
  const path = `/api/channels/${channel}/webhook?${new URLSearchParams(query).toString()}`
  const content = method === 'POST' ? { body: new Uint8Array(body) } : {}
  for (let tries = 1; ; tries++) {
    try {
      const response = await fetch(`${await url()}${path}`, { method, headers, ...content })
      const answer = { status: response.status, body: await response.text() }
      if (response.status < 500 || tries === MAX_TRIES) return answer
    } catch (error) {
      if (tries === MAX_TRIES) throw error
    }
    await delay(RETRY_MS)
  }
}
