import type { ChannelName } from './names.ts'

export interface SetupGuide {
  /** Letters for a tile. */
  readonly icon: string
  readonly difficulty: 'Easy' | 'Medium' | 'Hard'
  readonly setup_time: string
  /** All of it in one sentence. */
  readonly quick_setup: string
  readonly setup_type: 'form'
  readonly setup_steps: string[]
}
type Effort = readonly [difficulty: SetupGuide['difficulty'], minutes: number]

const EFFORT: Readonly<Record<string, Effort>> = {
  discord: ['Easy', 5],
  email: ['Medium', 5],
  gotify: ['Easy', 2],
  irc: ['Easy', 2],
  matrix: ['Easy', 3],
  mattermost: ['Easy', 5],
  mqtt: ['Medium', 5],
  ntfy: ['Easy', 1],
  slack: ['Medium', 10],
  telegram: ['Easy', 2],
  webhook: ['Easy', 2],
  whatsapp: ['Hard', 20],
  xmpp: ['Easy', 3],
  zulip: ['Easy', 3],
}
const DEFAULT_EFFORT: Effort = ['Medium', 10]

/** What is done at the platform, before the form is filled in. */
const STEPS: Readonly<Record<string, readonly string[]>> = {
  discord: [
    'In the developer portal (discord.com/developers/applications) make an application, and copy the token of its bot.',
    'On the same page switch on "Message Content Intent".',
    'Under OAuth2 choose the scope "bot" and what it may do, open the address, and choose a server.',
  ],
  email: [
    'Make a mailbox for the bot: what is in it already stays unread.',
    'Have the addresses of its IMAP and SMTP servers at hand, and its password, or one for apps.',
  ],
  gotify: [
    'In the web page of the server, under Apps, make an application for the answers, and copy its token.',
    'Under Clients, make a client, and copy its token: it reads what the other applications send.',
    'Put the ids of the applications that may ask into "Allowed users".',
  ],
  irc: ['Choose a nickname, and register it with NickServ if the network has it.', 'Choose the channels to join.'],
  matrix: [
    'Make an account for the bot on a homeserver.',
    'Enter its user and password, or an access token of it.',
    'Invite it to a room without encryption.',
  ],
  mattermost: [
    'As a system administrator switch on bot accounts, make one under Integrations, and copy its token.',
    'Add the bot to a team and its channels.',
  ],
  mqtt: [
    'Choose topics to read and to write; a + in the topic stands for the sender.',
    'Let the rules of the broker say who may write to them.',
  ],
  ntfy: [
    'Choose a topic that nobody guesses, or reserve one and make an access token.',
    'Subscribe to it in the app. The topic itself goes into "Allowed users".',
  ],
  slack: [
    'Make an app at api.slack.com/apps, with the scopes and events that the documentation lists, and install it.',
    'Copy its bot token (xoxb-…).',
    'Switch on Socket Mode and make an app-level token (xapp-…), or copy the signing secret for the webhook.',
  ],
  telegram: ['Write /newbot to @BotFather in Telegram.', 'Copy the token that it answers with.'],
  webhook: [
    'Make up a secret of at least 16 characters, which signs requests in both directions.',
    'For answers, have an address of the other program that takes them.',
  ],
  whatsapp: [
    'In the Meta dashboard make an app with the product WhatsApp, and copy the id of the phone number and the app secret.',
    'Make a system user, and a token for it that does not expire.',
    'After saving, enter the address of the webhook and the verify token in the dashboard, and subscribe to "messages".',
    'Or choose the mode "web", and link a phone with a QR code: that is against the terms of WhatsApp.',
  ],
  xmpp: ['Make an account for the bot on an XMPP server.', 'Choose the rooms it joins, if any.'],
  zulip: [
    'In the settings of Zulip, under Bots, add a bot of the type "Generic bot".',
    'Copy its email address and its API key.',
    'Subscribe it to the channels where it should answer.',
  ],
}

const ICONS: Readonly<Record<string, string>> = {
  discord: 'DC',
  email: '@',
  google_chat: 'GC',
  irc: '#',
  linkedin: 'in',
  mattermost: 'MM',
  messenger: 'FB',
  mqtt: 'MQ',
  nextcloud: 'NC',
  rocketchat: 'RC',
  telegram: 'TG',
  webhook: '{}',
  whatsapp: 'WA',
  xmpp: 'XM',
}

/** How a channel is set up, for people; something general for one that is not known here. */
export function setupGuide({ name, title }: ChannelName): SetupGuide {
  const [difficulty, minutes] = own(EFFORT, name) ?? DEFAULT_EFFORT
  const steps = own(STEPS, name) ?? [`Make an account or an app for the bot at ${title}, and copy its credentials.`]
  return {
    icon: own(ICONS, name) ?? title.slice(0, 2),
    difficulty,
    setup_time: `about ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}`,
    quick_setup: steps[0] ?? '',
    setup_type: 'form',
    setup_steps: [...steps, 'Fill in the form, choose the agent that answers, and say who may write to it.'],
  }
}

const own = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined
