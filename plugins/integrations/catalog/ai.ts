import type { TemplateInput } from './template.ts'

export const ai: readonly TemplateInput[] = [
  {
    id: 'brave-search',
    name: 'Brave Search',
    description: 'Searches the web, news, images and videos',
    category: 'ai',
    icon: '🦁',
    tags: ['search', 'web'],
    transport: {
      type: 'stdio',
      command: 'brave-search-mcp-server',
      args: ['--transport', 'stdio'],
      hosts: ['api.search.brave.com'],
      package: { runner: 'npx', name: '@brave/brave-search-mcp-server', version: '2.1.4' },
    },
    required_env: [
      { name: 'BRAVE_API_KEY', label: 'API key', get_url: 'https://api-dashboard.search.brave.com/app/keys' },
    ],
  },
  {
    id: 'exa-search',
    name: 'Exa',
    description: 'Searches the web and reads pages',
    category: 'ai',
    icon: '🌐',
    tags: ['search', 'web'],
    transport: {
      type: 'http',
      url: 'https://mcp.exa.ai/mcp',
      headers: { 'x-api-key': '{EXA_API_KEY}' },
    },
    required_env: [{ name: 'EXA_API_KEY', label: 'API key', get_url: 'https://dashboard.exa.ai/api-keys' }],
  },
  {
    id: 'fetch',
    name: 'Fetch',
    description: 'Fetches pages and turns them into text',
    category: 'ai',
    icon: '📥',
    tags: ['web'],
    transport: {
      type: 'stdio',
      command: 'mcp-server-fetch',
      hosts: ['*'],
      package: { runner: 'uvx', name: 'mcp-server-fetch', version: '2026.10.24' },
    },
    setup_instructions: 'It may reach any public address. The tool web_fetch of the daemon needs no integration.',
  },
  {
    id: 'memory',
    name: 'Memory graph',
    description: 'Remembers entities and their relations in a file',
    category: 'ai',
    icon: '🧠',
    tags: ['memory', 'knowledge'],
    transport: {
      type: 'stdio',
      command: 'mcp-server-memory',
      env: { MEMORY_FILE_PATH: '{SERVER_FOLDER}/memory.jsonl' },
      package: { runner: 'npx', name: '@modelcontextprotocol/server-memory', version: '2026.8.31' },
    },
    setup_instructions: 'The file is in the folder of the server. Agents have a memory of the daemon without it.',
  },
  {
    id: 'sequential-thinking',
    name: 'Sequential thinking',
    description: 'Notes the steps of a thought, with revisions and branches',
    category: 'ai',
    icon: '🪜',
    tags: ['reasoning'],
    transport: {
      type: 'stdio',
      command: 'mcp-server-sequential-thinking',
      package: { runner: 'npx', name: '@modelcontextprotocol/server-sequential-thinking', version: '2026.8.31' },
    },
  },
]
