import type { TemplateInput } from './template.ts'

export const communication: readonly TemplateInput[] = [
  {
    id: 'slack',
    name: 'Slack',
    description: 'Reads and searches channels, and posts messages',
    category: 'communication',
    icon: '💬',
    tags: ['chat', 'messages'],
    transport: {
      type: 'stdio',
      command: 'slack-mcp-server',
      args: ['--transport', 'stdio'],
      env: { SLACK_MCP_XOXB_TOKEN: '{SLACK_BOT_TOKEN}' },
      hosts: ['slack.com', '*.slack.com'],
      package: { runner: 'npx', name: 'slack-mcp-server', version: '1.3.0' },
    },
    required_env: [
      {
        name: 'SLACK_BOT_TOKEN',
        label: 'Bot token',
        help: 'Begins with xoxb-. The bot sees the channels it was invited to.',
        get_url: 'https://api.slack.com/apps',
      },
      { name: 'SLACK_TEAM_ID', label: 'Team id', help: 'Begins with T.', is_secret: false, optional: true },
      {
        name: 'SLACK_CLIENT_ID',
        label: 'OAuth client id',
        help: 'To sign in instead of a bot token.',
        is_secret: false,
        optional: true,
      },
      { name: 'SLACK_CLIENT_SECRET', label: 'OAuth client secret', optional: true },
    ],
    oauth: {
      provider: 'slack',
      url: 'https://mcp.slack.com/mcp',
      client: { id: 'SLACK_CLIENT_ID', secret: 'SLACK_CLIENT_SECRET' },
    },
    setup_instructions:
      'Make a Slack app, add it to the workspace and enter its bot token. To sign in to the server of Slack instead, ' +
      'enable MCP in the app, leave the token empty and enter the OAuth client id and secret of the app. ' +
      'To have agents in a channel answer messages, set up the channel "slack" instead.',
  },
  {
    id: 'discord-mcp',
    name: 'Discord',
    description: 'Reads and posts messages, and manages channels of a Discord server',
    category: 'communication',
    icon: '🎮',
    tags: ['chat', 'messages'],
    transport: {
      type: 'stdio',
      command: 'mcp-discord',
      env: { DISCORD_TOKEN: '{DISCORD_BOT_TOKEN}' },
      hosts: ['discord.com', 'gateway.discord.gg'],
      direct_network: true,
      package: { runner: 'npx', name: 'mcp-discord', version: '1.3.4' },
    },
    required_env: [
      {
        name: 'DISCORD_BOT_TOKEN',
        label: 'Bot token',
        help: 'Of an application with a bot that has joined the server.',
        get_url: 'https://discord.com/developers/applications',
      },
    ],
    setup_instructions: 'Make an application with a bot, enable its message content intent and invite it.',
  },
  {
    id: 'teams-mcp',
    name: 'Microsoft Teams',
    description: 'Chats, channels and messages of Microsoft Teams',
    category: 'communication',
    icon: '👥',
    tags: ['chat', 'messages', 'microsoft'],
    transport: {
      type: 'http',
      url: 'https://agent365.svc.cloud.microsoft/agents/tenants/{TEAMS_TENANT_ID}/servers/mcp_TeamsServer',
    },
    required_env: [
      { name: 'TEAMS_TENANT_ID', label: 'Tenant id', is_secret: false },
      {
        name: 'TEAMS_CLIENT_ID',
        label: 'Application id',
        help: 'Of an application in Microsoft Entra that may use the MCP servers of Agent 365.',
        is_secret: false,
        get_url: 'https://entra.microsoft.com/',
      },
      { name: 'TEAMS_CLIENT_SECRET', label: 'Client secret', optional: true },
    ],
    oauth: { provider: 'microsoft', client: { id: 'TEAMS_CLIENT_ID', secret: 'TEAMS_CLIENT_SECRET' } },
    setup_instructions:
      'Microsoft hosts this server for tenants with Agent 365. Register an application in Microsoft Entra with ' +
      '/api/mcp/oauth/callback of this daemon as redirect address, and sign in.',
  },
]
