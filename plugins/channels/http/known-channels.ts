import type { ChannelDeclaration } from 'svc/channels'

export type Category = ChannelDeclaration['category']
/** What is known of a channel whether or not there is an adapter for it. */
export interface ChannelName {
  readonly name: string
  readonly title: string
  readonly category: Category
  readonly description: string
}

const titles: Readonly<Record<Category, Readonly<Record<string, readonly [title: string, description: string]>>>> = {
  messaging: {
    telegram: ['Telegram', 'Bots of Telegram'],
    discord: ['Discord', 'Bots in servers and direct messages'],
    whatsapp: ['WhatsApp', 'The business platform, or a phone linked with a QR code'],
    signal: ['Signal', 'A number served by signal-cli'],
    matrix: ['Matrix', 'Rooms of any homeserver'],
    email: ['Email', 'A mailbox, by IMAP and SMTP'],
    irc: ['IRC', 'Channels and private messages of an IRC network'],
    xmpp: ['XMPP', 'Chats and rooms of a Jabber server'],
    line: ['LINE', 'An official account of LINE'],
    viber: ['Viber', 'A bot account of Viber'],
    messenger: ['Messenger', 'A page on Facebook'],
    threema: ['Threema', 'A gateway id of Threema'],
    keybase: ['Keybase', 'Chats and teams of Keybase'],
    nostr: ['Nostr', 'Direct messages and notes on relays'],
    qq: ['QQ', 'Bots of the QQ open platform'],
    wechat: ['WeChat', 'An account of WeChat'],
    mumble: ['Mumble', 'Text messages of a Mumble server'],
  },
  enterprise: {
    slack: ['Slack', 'An app in a workspace'],
    teams: ['Microsoft Teams', 'A bot of the Bot Framework'],
    mattermost: ['Mattermost', 'A bot account of a Mattermost server'],
    google_chat: ['Google Chat', 'An app in spaces'],
    webex: ['Webex', 'A bot in Webex spaces'],
    feishu: ['Feishu', 'An app of Feishu or Lark'],
    rocketchat: ['Rocket.Chat', 'A bot account of a Rocket.Chat server'],
    zulip: ['Zulip', 'A bot in streams and topics'],
    dingtalk: ['DingTalk', 'A robot of DingTalk'],
    wecom: ['WeCom', 'An application of WeCom'],
    pumble: ['Pumble', 'A bot in a Pumble workspace'],
    flock: ['Flock', 'A bot in a Flock team'],
    twist: ['Twist', 'An integration in Twist'],
    nextcloud: ['Nextcloud Talk', 'A bot in conversations of Nextcloud Talk'],
  },
  social: {
    bluesky: ['Bluesky', 'Mentions and replies of an account'],
    mastodon: ['Mastodon', 'Mentions of an account on any instance'],
    reddit: ['Reddit', 'Comments and messages of an account'],
    linkedin: ['LinkedIn', 'Comments on posts of an organization'],
    twitch: ['Twitch', 'The chat of a Twitch channel'],
  },
  developer: {
    discourse: ['Discourse', 'Topics of a forum'],
    gitter: ['Gitter', 'Rooms of gitter.im, which is a Matrix server'],
    revolt: ['Revolt', 'Bots of Revolt, now Stoat'],
    guilded: ['Guilded', 'Closed in December 2025'],
    webhook: ['Webhook', 'Signed requests in and out'],
  },
  notification: {
    ntfy: ['ntfy', 'Topics of an ntfy server'],
    gotify: ['Gotify', 'Messages of a Gotify server'],
    mqtt: ['MQTT', 'Topics of an MQTT broker'],
  },
}

/** The channels that svc knows by name, with and without an adapter. */
export function knownChannels(): readonly ChannelName[] {
  return Object.entries(titles).flatMap(([category, channels]) =>
    Object.entries(channels).map(([name, [title, description]]) => ({
      name,
      title,
      category: category as Category,
      description,
    })),
  )
}
