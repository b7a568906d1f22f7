import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { toAddition } from '../../../plugins/integrations/addition.ts'
import { builtInTemplates } from '../../../plugins/integrations/catalog/index.ts'
import { readVariables } from '../../../plugins/integrations/variables.ts'
import { openWorld } from './world.ts'

/** The variables that programs which know the catalogue of compatible services send. */
const KNOWN: Readonly<Record<string, string>> = {
  aws: 'AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION',
  'azure-mcp': 'AZURE_SUBSCRIPTION_ID AZURE_TENANT_ID AZURE_CLIENT_ID AZURE_CLIENT_SECRET',
  bitbucket: 'BITBUCKET_USERNAME BITBUCKET_APP_PASSWORD',
  'brave-search': 'BRAVE_API_KEY',
  'discord-mcp': 'DISCORD_BOT_TOKEN',
  dropbox: 'DROPBOX_ACCESS_TOKEN',
  elasticsearch: 'ELASTICSEARCH_URL ELASTICSEARCH_API_KEY',
  'exa-search': 'EXA_API_KEY',
  'gcp-mcp': 'GOOGLE_APPLICATION_CREDENTIALS',
  github: 'GITHUB_PERSONAL_ACCESS_TOKEN oauth',
  gitlab: 'GITLAB_PERSONAL_ACCESS_TOKEN',
  gmail: 'oauth',
  'google-calendar': 'oauth',
  'google-drive': 'oauth',
  jira: 'JIRA_API_TOKEN JIRA_INSTANCE_URL JIRA_USER_EMAIL',
  linear: 'LINEAR_API_KEY',
  mongodb: 'MONGODB_URI',
  notion: 'NOTION_TOKEN',
  postgresql: 'POSTGRES_CONNECTION_STRING',
  redis: 'REDIS_URL',
  sentry: 'SENTRY_AUTH_TOKEN SENTRY_ORG_SLUG',
  slack: 'SLACK_BOT_TOKEN SLACK_TEAM_ID oauth',
  'sqlite-mcp': 'SQLITE_DB_PATH',
  'teams-mcp': 'oauth',
  todoist: 'TODOIST_API_KEY',
  fetch: '',
  filesystem: '',
  git: '',
  'google-maps': '',
  memory: '',
  puppeteer: '',
  'sequential-thinking': '',
  time: '',
}
const SAMPLE = 'https://user:p%40ss@host.example:8443/path'

it('has the 33 integrations with the variables that clients know', () => {
  const templates = new Map(builtInTemplates().map((template) => [template.id, template]))
  expect([...templates.keys()].toSorted()).toEqual(Object.keys(KNOWN).toSorted())
  for (const [id, names] of Object.entries(KNOWN)) {
    const { required_env: variables, oauth } = templates.get(id) ?? {}
    const own = [...(variables ?? []).map(({ name }) => name), ...(oauth ? ['oauth'] : [])]
    expect(own).toEqual(expect.arrayContaining(names.split(' ').filter((name) => name !== '')))
  }
})

it.each(builtInTemplates().map((template) => [template.id, template] as const))(
  '%s can be added with its variables, and puts no secret into arguments or addresses',
  (id, template) => {
    const credentials = Object.fromEntries(
      template.required_env.map(({ name }, index) => [name, SAMPLE.replace('p%40ss', `secret${index}`)]),
    )
    const addition = toAddition(id, template, readVariables(template, { credentials }), {
      settings: { trusted: [id], read: {}, write: {}, fetch_packages: true, npm_hosts: ['npm'], pypi_hosts: ['pypi'] },
      hasProgram: (name) => name === 'npx' || name === 'uvx',
      folderOf: (name) => `/home/mcp/${name}`,
    })
    // Variables that are no secrets may be in the table of servers.
    const { credentials: _values, headers: _headers, oauth: _client, ...open } = addition
    const secrets = template.required_env.filter(({ is_secret, optional }) => is_secret && !optional)
    for (const { name } of secrets) {
      const secret = /secret\d+/.exec(credentials[name] ?? '')?.[0] ?? ''
      expect(JSON.stringify(open)).not.toContain(secret)
      expect(JSON.stringify(addition)).toContain(template.oauth && addition.oauth ? '' : secret)
    }
    expect(JSON.stringify(addition)).not.toMatch(/\{[A-Z_]+(?::[a-z]+)?\}/)
    if (template.transport.type === 'stdio') {
      expect(template.transport.package?.version).toMatch(/^\d+\.\d+\.\d+$/)
      expect(addition.args?.join(' ')).toContain(template.transport.package?.version)
      expect(addition.network).toContain(addition.command === 'npx' ? 'npm' : 'pypi')
    }
  },
)

it('reads templates of the operator, which replace shipped ones, and says what is wrong with a file', async () => {
  await using world = await openWorld({ max_template_bytes: 1024, max_templates: 7 })
  const folder = join(world.homeDir, 'integrations')
  await mkdir(folder)
  const own = (id: string, more = '') =>
    `id = "${id}"\nname = "Own"\ndescription = "d"\ncategory = "own"\n${more}[transport]\ntype = "stdio"\ncommand = "/bin/own"\n`
  const files: Readonly<Record<string, string>> = {
    'a-github.toml': own('github'),
    'b-broken.toml': 'id = ',
    'c-id.toml': own('Not An Id'),
    'd-key.toml': own('own', 'colour = "red"\n'),
    'e-leak.toml': `${own('leak', '')}args = ["{KEY}"]\n[[required_env]]\nname = "KEY"\nlabel = "Key"\n`,
    'f-unknown.toml': `${own('other')}args = ["{NAME}"]\n`,
    'g-large.toml': `# ${'x'.repeat(2000)}\n${own('large')}`,
    'h-many.toml': own('many'),
    'readme.md': 'no template',
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  const { templates, problems } = await world.service.catalog()
  expect(templates.get('github')).toMatchObject({ name: 'Own', category: 'own' })
  expect(templates.size).toBe(33)
  expect(Object.fromEntries(problems.map(({ file, message }) => [file, message]))).toEqual({
    'b-broken.toml': expect.stringMatching(/^not TOML, line 1: .*invalid value$/),
    'c-id.toml': expect.stringMatching(/^id: .*lower-case/),
    'd-key.toml': expect.stringContaining('colour'),
    'e-leak.toml': expect.stringContaining('a secret may stand in a variable or a header only'),
    'f-unknown.toml': expect.stringContaining('not in required_env'),
    'g-large.toml': expect.stringContaining('max_template_bytes'),
    'h-many.toml': expect.stringContaining('max_templates'),
  })
})
