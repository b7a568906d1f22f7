import { startFakeDingTalk } from '../support/platforms/dingtalk.ts'
import { FakeBluesky } from '../support/platforms/bluesky.ts'
import { startFakeDiscord } from '../support/platforms/discord.ts'
import { FakeFlock } from '../support/platforms/flock.ts'
import { FakeGoogleChat } from '../support/platforms/google-chat.ts'
import { startFakeFeishu } from '../support/platforms/feishu.ts'
import { startFakeGitter } from '../support/platforms/gitter.ts'
import { FakeDiscourse } from '../support/platforms/discourse.ts'
import { FakeGotify } from '../support/platforms/gotify.ts'
import { FakeLine } from '../support/platforms/line.ts'
import { FakeKeybase } from '../support/platforms/keybase.ts'
import { startFakeGuilded } from '../support/platforms/guilded.ts'
import { FakeLinkedIn } from '../support/platforms/linkedin.ts'
import { startFakeMastodon } from '../support/platforms/mastodon.ts'
import { startFakeMatrix } from '../support/platforms/matrix.ts'
import { startFakeMattermost } from '../support/platforms/mattermost.ts'
import { FakeMessenger } from '../support/platforms/messenger.ts'
import { FakeNostr } from '../support/platforms/nostr.ts'
import { startFakeNextcloudAccount, startFakeNextcloudBot } from '../support/platforms/nextcloud.ts'
import { FakeNtfy } from '../support/platforms/ntfy.ts'
import { FakePumble } from '../support/platforms/pumble.ts'
import { FakeSignalDaemon, FakeSignalRest } from '../support/platforms/signal.ts'
import { startFakeQq } from '../support/platforms/qq.ts'
import { startFakeRevolt } from '../support/platforms/revolt.ts'
import { FakeReddit } from '../support/platforms/reddit.ts'
import { startFakeRocketChat } from '../support/platforms/rocketchat.ts'
import { startFakeSlack } from '../support/platforms/slack.ts'
import { FakeTeams } from '../support/platforms/teams.ts'
import { FakeTelegram } from '../support/platforms/telegram.ts'
import { FakeViber } from '../support/platforms/viber.ts'
import { FakeWebex } from '../support/platforms/webex.ts'
import { FakeThreema } from '../support/platforms/threema.ts'
import { FakeTwitch } from '../support/platforms/twitch.ts'
import { FakeTwist } from '../support/platforms/twist.ts'
import { FakeWebhook } from '../support/platforms/webhook.ts'
import { FakeWeChatAccount } from '../support/platforms/wechat-account.ts'
import { FakeWeChat } from '../support/platforms/wechat.ts'
import { FakeWeComApp } from '../support/platforms/wecom-app.ts'
import { startFakeWeComBot } from '../support/platforms/wecom-bot.ts'
import { FakeWhatsApp } from '../support/platforms/whatsapp.ts'
import { FakeZulip } from '../support/platforms/zulip.ts'
import { testChannel } from './channel.ts'
import type { ChannelRow } from './channel.ts'

const dingtalk = () => import('../../adapters/channels/dingtalk/adapter.ts')
const bluesky = () => import('../../adapters/channels/bluesky/adapter.ts')
const discord = () => import('../../adapters/channels/discord/adapter.ts')
const flock = () => import('../../adapters/channels/flock/adapter.ts')
const googleChat = () => import('../../adapters/channels/google-chat/adapter.ts')
const feishu = () => import('../../adapters/channels/feishu/adapter.ts')
const gitter = () => import('../../adapters/channels/gitter/adapter.ts')
const discourse = () => import('../../adapters/channels/discourse/adapter.ts')
const gotify = () => import('../../adapters/channels/gotify/adapter.ts')
const line = () => import('../../adapters/channels/line/adapter.ts')
const keybase = () => import('../../adapters/channels/keybase/adapter.ts')
const guilded = () => import('../../adapters/channels/guilded/adapter.ts')
const linkedin = () => import('../../adapters/channels/linkedin/adapter.ts')
const mastodon = () => import('../../adapters/channels/mastodon/adapter.ts')
const matrix = () => import('../../adapters/channels/matrix/adapter.ts')
const mattermost = () => import('../../adapters/channels/mattermost/adapter.ts')
const messenger = () => import('../../adapters/channels/messenger/adapter.ts')
const nostr = () => import('../../adapters/channels/nostr/adapter.ts')
const nextcloud = () => import('../../adapters/channels/nextcloud/adapter.ts')
const ntfy = () => import('../../adapters/channels/ntfy/adapter.ts')
const pumble = () => import('../../adapters/channels/pumble/adapter.ts')
const signal = () => import('../../adapters/channels/signal/adapter.ts')
const qq = () => import('../../adapters/channels/qq/adapter.ts')
const revolt = () => import('../../adapters/channels/revolt/adapter.ts')
const reddit = () => import('../../adapters/channels/reddit/adapter.ts')
const rocketchat = () => import('../../adapters/channels/rocketchat/adapter.ts')
const slack = () => import('../../adapters/channels/slack/adapter.ts')
const teams = () => import('../../adapters/channels/teams/adapter.ts')
const telegram = () => import('../../adapters/channels/telegram/adapter.ts')
const viber = () => import('../../adapters/channels/viber/adapter.ts')
const webex = () => import('../../adapters/channels/webex/adapter.ts')
const threema = () => import('../../adapters/channels/threema/adapter.ts')
const twitch = () => import('../../adapters/channels/twitch/adapter.ts')
const twist = () => import('../../adapters/channels/twist/adapter.ts')
const webhook = () => import('../../adapters/channels/webhook/adapter.ts')
const wechat = () => import('../../adapters/channels/wechat/adapter.ts')
/** It sends pictures alone, and is sent no files. */
const wechatAccount = async () => {
  const { default: adapter } = await wechat()
  const { attachments: _, ...capabilities } = adapter.capabilities
  return { default: { ...adapter, capabilities } }
}
const wecom = () => import('../../adapters/channels/wecom/adapter.ts')
const whatsapp = () => import('../../adapters/channels/whatsapp/adapter.ts')
const zulip = () => import('../../adapters/channels/zulip/adapter.ts')

/** One more channel is one more row, by name. */
const channels: readonly ChannelRow[] = [
  { name: 'dingtalk in Stream mode', load: dingtalk, start: () => startFakeDingTalk() },
  { name: 'dingtalk by webhook', load: dingtalk, start: () => startFakeDingTalk({ webhook: true }) },
  { name: 'bluesky', load: bluesky, start: () => FakeBluesky.start() },
  { name: 'discord', load: discord, start: startFakeDiscord },
  { name: 'flock', load: flock, start: () => FakeFlock.start() },
  { name: 'google_chat', load: googleChat, start: () => FakeGoogleChat.start() },
  { name: 'google_chat as an add-on', load: googleChat, start: () => FakeGoogleChat.start({ addOn: true }) },
  { name: 'feishu by long connection', load: feishu, start: () => startFakeFeishu() },
  { name: 'feishu by webhook', load: feishu, start: () => startFakeFeishu({ webhook: true }) },
  { name: 'gitter', load: gitter, start: startFakeGitter },
  { name: 'discourse', load: discourse, start: () => FakeDiscourse.start() },
  { name: 'discourse by webhook', load: discourse, start: () => FakeDiscourse.start({ webhook: true }) },
  { name: 'gotify', load: gotify, start: () => FakeGotify.start() },
  { name: 'line', load: line, start: () => FakeLine.start() },
  { name: 'keybase', load: keybase, start: () => FakeKeybase.start() },
  { name: 'guilded', load: guilded, start: startFakeGuilded },
  { name: 'linkedin', load: linkedin, start: () => FakeLinkedIn.start() },
  { name: 'mastodon', load: mastodon, start: startFakeMastodon },
  { name: 'matrix', load: matrix, start: startFakeMatrix },
  { name: 'mattermost', load: mattermost, start: startFakeMattermost },
  { name: 'messenger', load: messenger, start: () => FakeMessenger.start() },
  { name: 'nostr', load: nostr, start: () => FakeNostr.start() },
  { name: 'nextcloud, a bot', load: nextcloud, start: startFakeNextcloudBot },
  { name: 'nextcloud, an account', load: nextcloud, start: startFakeNextcloudAccount },
  { name: 'ntfy', load: ntfy, start: () => FakeNtfy.start() },
  { name: 'pumble', load: pumble, start: () => FakePumble.start() },
  { name: 'signal by signal-cli', load: signal, start: () => FakeSignalDaemon.start() },
  { name: 'signal by signal-cli-rest-api', load: signal, start: () => FakeSignalRest.start() },
  { name: 'qq', load: qq, start: () => startFakeQq() },
  { name: 'qq by webhook', load: qq, start: () => startFakeQq({ webhook: true }) },
  { name: 'revolt', load: revolt, start: startFakeRevolt },
  { name: 'reddit', load: reddit, start: () => FakeReddit.start() },
  { name: 'rocketchat', load: rocketchat, start: startFakeRocketChat },
  { name: 'slack by Socket Mode', load: slack, start: () => startFakeSlack() },
  { name: 'slack by the Events API', load: slack, start: () => startFakeSlack({ webhook: true }) },
  { name: 'teams', load: teams, start: () => FakeTeams.start() },
  { name: 'telegram', load: telegram, start: () => FakeTelegram.start() },
  { name: 'telegram by webhook', load: telegram, start: () => FakeTelegram.start({ webhook: true }) },
  { name: 'viber', load: viber, start: () => FakeViber.start() },
  { name: 'webex', load: webex, start: () => FakeWebex.start() },
  { name: 'threema', load: threema, start: () => FakeThreema.start() },
  { name: 'twitch', load: twitch, start: () => FakeTwitch.start() },
  { name: 'twist', load: twist, start: () => FakeTwist.start() },
  { name: 'webhook', load: webhook, start: () => FakeWebhook.start() },
  { name: 'wechat', load: wechat, start: () => FakeWeChat.start() },
  { name: 'wechat by an official account', load: wechatAccount, start: () => FakeWeChatAccount.start() },
  { name: 'wecom as a robot', load: wecom, start: startFakeWeComBot },
  { name: 'wecom as an application', load: wecom, start: () => FakeWeComApp.start() },
  { name: 'whatsapp', load: whatsapp, start: () => FakeWhatsApp.start() },
  { name: 'zulip', load: zulip, start: () => FakeZulip.start() },
]

for (const channel of channels) testChannel(channel)
