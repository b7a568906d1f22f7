import type { TemplateInput } from './template.ts'

const unconfined =
  'The program connects to the database directly, which a confined program cannot: list the integration in ' +
  'plugins.integrations.trusted of the configuration file.'

export const data: readonly TemplateInput[] = [
  {
    id: 'postgresql',
    name: 'PostgreSQL',
    description: 'Reads tables and runs queries in a PostgreSQL database',
    category: 'data',
    icon: '🐘',
    tags: ['database', 'sql'],
    transport: {
      type: 'stdio',
      command: 'dbhub',
      args: ['--transport', 'stdio'],
      env: { DSN: '{POSTGRES_CONNECTION_STRING}' },
      direct_network: true,
      package: { runner: 'npx', name: '@bytebase/dbhub', version: '1.4.0' },
    },
    required_env: [
      {
        name: 'POSTGRES_CONNECTION_STRING',
        label: 'Connection string',
        help: 'Such as postgres://user:password@host:5432/name. Use a role that may only do what agents may do.',
      },
    ],
    setup_instructions: unconfined,
  },
  {
    id: 'sqlite-mcp',
    name: 'SQLite',
    description: 'Reads tables and runs queries in a SQLite file',
    category: 'data',
    icon: '🗄️',
    tags: ['database', 'sql'],
    transport: {
      type: 'stdio',
      command: 'mcp-server-sqlite',
      args: ['--db-path', '{SQLITE_DB_PATH}'],
      package: { runner: 'uvx', name: 'mcp-server-sqlite', version: '2025.4.25' },
    },
    required_env: [
      {
        name: 'SQLITE_DB_PATH',
        label: 'Path of the file',
        help: 'In the folder of the server, or in one of plugins.integrations.write.',
        is_secret: false,
        default: '{SERVER_FOLDER}/data.sqlite',
        path: 'write',
      },
    ],
    setup_instructions: 'The file is made when it does not exist. The package is no longer maintained by its authors.',
  },
  {
    id: 'mongodb',
    name: 'MongoDB',
    description: 'Reads collections and runs queries in MongoDB',
    category: 'data',
    icon: '🍃',
    tags: ['database'],
    transport: {
      type: 'stdio',
      command: 'mongodb-mcp-server',
      env: { MDB_MCP_CONNECTION_STRING: '{MONGODB_URI}', MDB_MCP_READ_ONLY: 'true', MDB_MCP_TELEMETRY: 'disabled' },
      direct_network: true,
      package: { runner: 'npx', name: 'mongodb-mcp-server', version: '3.0.4' },
    },
    required_env: [
      { name: 'MONGODB_URI', label: 'Connection string', help: 'Such as mongodb://user:password@host:27017/name.' },
    ],
    setup_instructions: `It only reads. ${unconfined}`,
  },
  {
    id: 'redis',
    name: 'Redis',
    description: 'Reads and writes keys in Redis',
    category: 'data',
    icon: '🧱',
    tags: ['database', 'cache'],
    transport: {
      type: 'stdio',
      command: 'redis-mcp-server',
      env: {
        REDIS_HOST: '{REDIS_URL:hostname}',
        REDIS_PORT: '{REDIS_URL:port}',
        REDIS_USERNAME: '{REDIS_URL:username}',
        REDIS_PWD: '{REDIS_URL:password}',
      },
      direct_network: true,
      package: { runner: 'uvx', name: 'redis-mcp-server', version: '0.5.1' },
    },
    required_env: [{ name: 'REDIS_URL', label: 'Address', help: 'Such as redis://user:password@host:6379.' }],
    setup_instructions: unconfined,
  },
  {
    id: 'elasticsearch',
    name: 'Elasticsearch',
    description: 'Searches indices and shows their mappings',
    category: 'data',
    icon: '🔎',
    tags: ['search', 'database'],
    transport: {
      type: 'stdio',
      command: 'mcp-server-elasticsearch',
      env: { ES_URL: '{ELASTICSEARCH_URL}', ES_API_KEY: '{ELASTICSEARCH_API_KEY}' },
      direct_network: true,
      package: { runner: 'npx', name: '@elastic/mcp-server-elasticsearch', version: '0.3.1' },
    },
    required_env: [
      { name: 'ELASTICSEARCH_URL', label: 'Address', help: 'Such as https://search:9200.', is_secret: false },
      { name: 'ELASTICSEARCH_API_KEY', label: 'API key', help: 'With rights for the indices that agents may search.' },
    ],
    setup_instructions: unconfined,
  },
  {
    id: 'google-maps',
    name: 'Google Maps',
    description: 'Places, routes and weather',
    category: 'data',
    icon: '🗺️',
    tags: ['maps', 'places', 'google'],
    transport: {
      type: 'http',
      url: 'https://mapstools.googleapis.com/mcp',
      headers: { 'x-goog-api-key': '{GOOGLE_MAPS_API_KEY}' },
    },
    required_env: [
      {
        name: 'GOOGLE_MAPS_API_KEY',
        label: 'API key',
        help: 'Of a project in which the Maps Grounding service is enabled.',
        get_url: 'https://console.cloud.google.com/google/maps-apis/credentials',
      },
    ],
  },
]
