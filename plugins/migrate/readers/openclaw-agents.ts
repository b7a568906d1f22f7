import { omitUndefined } from 'svc/sdk'
import type { HomeDraft } from '../model.ts'
import { readFields } from '../source/parse.ts'
import type { SourceFolder } from '../source/source-folder.ts'
import { fieldsOf, listOf, textOf, textsOf } from '../source/values.ts'
import type { Fields } from '../source/values.ts'
import { readMemoryFile } from './memories.ts'
import { isProfile, splitModel, toolNames } from './names.ts'
import { providerName } from './names.ts'

/** The id of the agent of a home that lists none. */
export const MAIN = 'main'
/** Keys of an agent of the configuration that are read here, and those that say where it lies there. */
export const AGENT_KEYS: ReadonlySet<string> = new Set([
  'id',
  'name',
  'default',
  'workspace',
  'agentDir',
  'model',
  'tools',
  'identity',
])
const NO_RIGHTS =
  'it may run no programs and use no network until its manifest says so (capabilities.shell, capabilities.network)'

/** Agents of the configuration, or of a YAML file each, with their memories. */
export async function readAgents(
  draft: HomeDraft,
  folder: SourceFolder,
  config: Fields,
  isOld: boolean,
): Promise<void> {
  if (isOld) await readOldAgents(draft, folder)
  else await readListed(draft, folder, config)
  for (const { name, isFolder } of await folder.list('memory')) {
    // The first versions called the main agent `default`.
    const agent = draft.agents.find(({ key }) => key === name) ?? (name === 'default' ? draft.agents[0] : undefined)
    const file = `memory/${name}/MEMORY.md`
    if (isFolder && agent) await readMemoryFile(draft, folder, file, agent.key)
    else if (isFolder) draft.leave('memory', file, `there is no agent "${name}"`)
  }
}

async function readListed(draft: HomeDraft, folder: SourceFolder, config: Fields): Promise<void> {
  const agents = fieldsOf(config['agents'])
  const defaults = { ...fieldsOf(config['agent']), ...fieldsOf(agents['defaults']) }
  const listed = listOf(agents['list']).map(fieldsOf)
  const entries = listed.length > 0 ? listed : [{ id: MAIN }]
  for (const entry of entries) {
    const key = textOf(entry['id'])
    if (key === undefined) {
      draft.leave('agent', textOf(entry['name']) ?? 'an agent', 'it has no id')
      continue
    }
    if (draft.agents.some((agent) => agent.key === key)) {
      draft.leave('agent', key, 'the id is there twice')
      continue
    }
    const workspace = await findWorkspace(draft, folder, key, textOf(entry['workspace']), textOf(defaults['workspace']))
    draft.agents.push({
      key,
      name: textOf(entry['name']) ?? key,
      format: 'json5',
      manifest: manifestOf(entry, defaults),
      workspace,
      warnings: [NO_RIGHTS],
    })
    if (workspace === undefined) continue
    const other = draft.agents.find((agent) => agent.workspace === workspace && agent.key !== key)
    if (other) draft.warnings.push(sharedMemories(other.name, textOf(entry['name']) ?? key, workspace))
    else await readWorkspaceMemories(draft, folder, workspace, key)
  }
}

const sharedMemories = (first: string, second: string, workspace: string): string =>
  `agents "${first}" and "${second}" share ${workspace}: what it remembers comes over for "${first}". To share it, put ` +
  `memory_write = ["shared.user"] into the capabilities of "${first}", and memory_read = ["${first}.user"] into those ` +
  `of "${second}"`

function manifestOf(entry: Fields, defaults: Fields): Fields {
  const models = [entry['model'], defaults['model']]
  const primary = models.flatMap((one) => textOf(one) ?? textOf(fieldsOf(one)['primary']) ?? [])[0]
  const fallbacks = models.map((one) => textsOf(fieldsOf(one)['fallbacks'] ?? [])).find((list) => list.length > 0) ?? []
  const tools = { ...fieldsOf(defaults['tools']), ...fieldsOf(entry['tools']) }
  const profile = textOf(tools['profile']) ?? textOf(fieldsOf(tools['profile'])['name'])
  const allowed = toolNames([...textsOf(tools['allow'] ?? []), ...textsOf(tools['alsoAllow'] ?? [])])
  const denied = toolNames(textsOf(tools['deny'] ?? []))
  const prompt = promptOf(entry['identity'] ?? defaults['identity'])
  const { emoji } = fieldsOf(entry['identity'])
  return omitUndefined({
    model: omitUndefined({ ...(primary === undefined ? {} : splitModel(primary)), system_prompt: prompt }),
    fallback_models: fallbacks.length === 0 ? undefined : fallbacks.map(splitModel),
    profile: isProfile(profile) ? profile : allowed.length > 0 ? undefined : 'coding',
    capabilities: allowed.length > 0 ? { tools: allowed } : undefined,
    tool_blocklist: denied.length === 0 ? undefined : denied,
    metadata: textOf(emoji) === undefined ? undefined : { emoji },
  })
}
/** A text, or a table that has one under a usual name. */
function promptOf(identity: unknown): string | undefined {
  const text = textOf(identity)
  if (text !== undefined) return text
  const fields = fieldsOf(identity)
  return ['systemPrompt', 'prompt', 'instructions', 'persona', 'theme'].flatMap((key) => textOf(fields[key]) ?? [])[0]
}

/** The folder in the home, whatever the path in the configuration is called there. */
async function findWorkspace(
  draft: HomeDraft,
  folder: SourceFolder,
  key: string,
  own: string | undefined,
  common: string | undefined,
): Promise<string | undefined> {
  const named = own ?? (key === MAIN ? common : undefined)
  const inside = named === undefined ? undefined : insideOf(named, folder.path)
  const candidates = [inside, `workspaces/${key}`, `workspace-${key}`, `agents/${key}/workspace`]
  if (draft.agents.length === 0) candidates.push('workspace')
  for (const one of candidates) if (one !== undefined && (await folder.hasFolder(one))) return one
  if (named !== undefined && inside === undefined)
    draft.leave(
      'workspace',
      key,
      `${named} lies outside of ${folder.path}, and is not read: copy it to ${folder.path}/workspaces/${key} and run this again`,
    )
  return undefined
}
/** What follows the name of the home in a path: it may have been moved since. */
function insideOf(path: string, home: string): string | undefined {
  if (path.startsWith(`${home}/`)) return clean(path.slice(home.length + 1))
  const [, rest] = /(?:^|\/)\.?(?:openclaw|clawdbot|moldbot|moltbot)\/(.+)$/.exec(path) ?? []
  return rest === undefined ? undefined : clean(rest)
}
function clean(path: string): string | undefined {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.')
  return parts.length === 0 || parts.includes('..') ? undefined : parts.join('/')
}

/** `MEMORY.md`, and the notes of the days in `memory/`. */
export async function readWorkspaceMemories(
  draft: HomeDraft,
  folder: SourceFolder,
  workspace: string,
  agent: string,
): Promise<void> {
  for (const name of ['MEMORY.md', 'memory.md']) {
    if (!(await folder.has(`${workspace}/${name}`))) continue
    await readMemoryFile(draft, folder, `${workspace}/${name}`, agent)
    break
  }
  for (const { name, isFolder } of await folder.list(`${workspace}/memory`))
    if (!isFolder && name.endsWith('.md')) await readMemoryFile(draft, folder, `${workspace}/memory/${name}`, agent)
}

/** `agents/<name>/agent.yaml` of the first versions. */
async function readOldAgents(draft: HomeDraft, folder: SourceFolder): Promise<void> {
  for (const { name, isFolder } of await folder.list('agents')) {
    if (!isFolder) continue
    const below = `agents/${name}`
    const file = (await folder.has(`${below}/agent.yaml`)) ? `${below}/agent.yaml` : `${below}/agent.yml`
    const fields = await readFields(folder, file)
    if (!fields) continue
    const tools = toolNames(textsOf(fields['tools'] ?? []))
    const profile = textOf(fields['tool_profile'])
    const model = textOf(fields['model'])
    const provider = textOf(fields['provider'])
    draft.agents.push({
      key: name,
      name: textOf(fields['name']) ?? name,
      format: 'yaml',
      manifest: omitUndefined({
        description: textOf(fields['description']),
        tags: textsOf(fields['tags'] ?? []),
        model: omitUndefined({
          ...(model === undefined ? {} : splitModel(model)),
          ...(provider === undefined ? {} : { provider: providerName(provider) }),
          system_prompt: textOf(fields['system_prompt']),
          base_url: textOf(fields['base_url']),
          api_key_env: textOf(fields['api_key_env']),
        }),
        profile: isProfile(profile) ? profile : tools.length > 0 ? undefined : 'coding',
        capabilities: tools.length > 0 ? { tools } : undefined,
      }),
      workspace: (await folder.hasFolder(`${below}/workspace`)) ? `${below}/workspace` : undefined,
      warnings: [NO_RIGHTS],
    })
    if (await folder.has(`${below}/MEMORY.md`)) await readMemoryFile(draft, folder, `${below}/MEMORY.md`, name)
  }
}
