import type { TemplateInput } from './template.ts'

const googleClient = [
  {
    name: 'GOOGLE_CLIENT_ID',
    label: 'OAuth client id',
    help: 'Of a web client in a project of Google Cloud in which the MCP service is enabled.',
    is_secret: false,
    get_url: 'https://console.cloud.google.com/apis/credentials',
  },
  { name: 'GOOGLE_CLIENT_SECRET', label: 'OAuth client secret' },
]
const google = { id: 'GOOGLE_CLIENT_ID', secret: 'GOOGLE_CLIENT_SECRET' }
const googleSetup =
  'In Google Cloud, enable the API and its MCP service, make an OAuth client for web applications with ' +
  '/api/mcp/oauth/callback of this daemon as redirect address, enter its id and secret, and sign in. ' +
  'Google offers these servers as a preview.'
const scope = (name: string): string => `https://www.googleapis.com/auth/${name}`

export const productivity: readonly TemplateInput[] = [
  {
    id: 'gmail',
    name: 'Gmail',
    description: 'Searches and reads mail, and drafts messages',
    category: 'productivity',
    icon: '📧',
    tags: ['mail', 'google'],
    transport: { type: 'http', url: 'https://gmailmcp.googleapis.com/mcp/v1' },
    required_env: googleClient,
    oauth: { provider: 'google', scopes: [scope('gmail.readonly'), scope('gmail.compose')], client: google },
    setup_instructions: googleSetup,
  },
  {
    id: 'google-calendar',
    name: 'Google Calendar',
    description: 'Reads calendars and events',
    category: 'productivity',
    icon: '📅',
    tags: ['calendar', 'google'],
    transport: { type: 'http', url: 'https://calendarmcp.googleapis.com/mcp/v1' },
    required_env: googleClient,
    oauth: {
      provider: 'google',
      scopes: [
        scope('calendar.calendarlist.readonly'),
        scope('calendar.events.freebusy'),
        scope('calendar.events.readonly'),
      ],
      client: google,
    },
    setup_instructions: googleSetup,
  },
  {
    id: 'google-drive',
    name: 'Google Drive',
    description: 'Searches, reads and makes files in Google Drive',
    category: 'productivity',
    icon: '🗂️',
    tags: ['files', 'documents', 'google'],
    transport: { type: 'http', url: 'https://drivemcp.googleapis.com/mcp/v1' },
    required_env: googleClient,
    oauth: { provider: 'google', scopes: [scope('drive.readonly'), scope('drive.file')], client: google },
    setup_instructions: googleSetup,
  },
  {
    id: 'dropbox',
    name: 'Dropbox',
    description: 'Finds, reads and organizes files in Dropbox',
    category: 'productivity',
    icon: '📦',
    tags: ['files'],
    transport: {
      type: 'http',
      url: 'https://mcp.dropbox.com/mcp',
      headers: { authorization: 'Bearer {DROPBOX_ACCESS_TOKEN}' },
    },
    required_env: [
      {
        name: 'DROPBOX_ACCESS_TOKEN',
        label: 'Access token',
        help: 'Tokens of the app console are valid for some hours only: signing in lasts.',
        get_url: 'https://www.dropbox.com/developers/apps',
      },
    ],
    oauth: { provider: 'dropbox' },
    setup_instructions: 'Sign in. A token of the app console works for a try.',
  },
  {
    id: 'notion',
    name: 'Notion',
    description: 'Searches, reads and writes pages and databases',
    category: 'productivity',
    icon: '📝',
    tags: ['notes', 'documents', 'wiki'],
    transport: {
      type: 'stdio',
      command: 'notion-mcp-server',
      hosts: ['api.notion.com'],
      package: { runner: 'npx', name: '@notionhq/notion-mcp-server', version: '2.5.2' },
    },
    required_env: [
      {
        name: 'NOTION_TOKEN',
        label: 'Token of an internal integration',
        help: 'The integration sees the pages that are shared with it.',
        get_url: 'https://www.notion.so/profile/integrations',
      },
    ],
    oauth: { provider: 'notion', url: 'https://mcp.notion.com/mcp' },
    setup_instructions: 'Sign in to the server of Notion, or enter the token of an internal integration.',
  },
  {
    id: 'todoist',
    name: 'Todoist',
    description: 'Tasks and projects of Todoist',
    category: 'productivity',
    icon: '✅',
    tags: ['tasks', 'projects'],
    transport: {
      type: 'http',
      url: 'https://ai.todoist.net/mcp',
      headers: { authorization: 'Bearer {TODOIST_API_KEY}' },
    },
    required_env: [
      {
        name: 'TODOIST_API_KEY',
        label: 'API token',
        get_url: 'https://app.todoist.com/app/settings/integrations/developer',
      },
    ],
    oauth: { provider: 'todoist' },
    setup_instructions: 'Sign in, or enter the API token of your account.',
  },
  {
    id: 'time',
    name: 'Time',
    description: 'The time in any time zone, and conversions between them',
    category: 'productivity',
    icon: '🕒',
    tags: ['time', 'time-zones'],
    transport: {
      type: 'stdio',
      command: 'mcp-server-time',
      args: ['--local-timezone', '{LOCAL_TIMEZONE}'],
      package: { runner: 'uvx', name: 'mcp-server-time', version: '2026.10.19' },
    },
    required_env: [
      {
        name: 'LOCAL_TIMEZONE',
        label: 'Time zone',
        help: 'Such as Europe/Berlin.',
        is_secret: false,
        default: 'UTC',
      },
    ],
  },
]
