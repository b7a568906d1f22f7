import { messageOf } from 'svc/internal'
import { commandLine } from 'svc/sdk'
import type { HomeDraft, SourceHome } from '../model.ts'
import type { Scratch } from '../source/database.ts'
import { readFields } from '../source/parse.ts'
import type { SourceFolder } from '../source/source-folder.ts'
import type { ReadLimits } from '../source/limits.ts'
import { secretVariables } from '../source/secrets.ts'
import { entryOf, fieldsOf, listOf, readVariables, textOf } from '../source/values.ts'
import type { Fields } from '../source/values.ts'
import { HomeDraft as Draft } from '../model.ts'
import { readChannels } from './channels.ts'
import { AGENT_KEYS, readAgents } from './openclaw-agents.ts'
import { readKeys } from './openclaw-keys.ts'
import { readJobs } from './openclaw-jobs.ts'
import { readSessions } from './openclaw-sessions.ts'
import { splitModel } from './names.ts'
import { readSkills } from './skills.ts'

/** Newest first. */
const CONFIG_FILES = ['openclaw.json', 'clawdbot.json', 'moldbot.json', 'moltbot.json'] as const

export interface ReaderDeps {
  readonly folder: SourceFolder
  readonly scratch: Scratch
  readonly limits: ReadLimits
}

/** Whether a folder is a home of OpenClaw: it has a configuration, conversations or memories. */
export async function isOpenClaw(folder: SourceFolder): Promise<boolean> {
  for (const name of [...CONFIG_FILES, 'config.yaml']) if (await folder.has(name)) return true
  return (await folder.hasFolder('sessions')) || (await folder.hasFolder('memory'))
}

/**
 * A home of OpenClaw. The facts are those of docs.openclaw.ai (gateway/configuration, reference/session-management,
 * reference/database-schemas, automation/cron-jobs) and of the importer of LibreFang, as they were in November 2026:
 * one JSON5 file for all settings; before that `config.yaml` and a YAML file for each agent and channel.
 */
export async function readOpenClaw(deps: ReaderDeps): Promise<SourceHome> {
  const { folder, limits } = deps
  const draft = new Draft(limits)
  const { name: version, config } = await readConfig(folder)
  const isOld = version === 'config.yaml'
  const variables = await readEnvironment(folder, config)
  for (const secret of secretVariables(variables)) folder.mask.register(secret)
  await readAgents(draft, folder, config, isOld)
  await readKeys(draft, folder, config, variables)
  readChannels(draft, {
    section: isOld ? await oldChannels(folder) : channelsOf(config),
    variables: (name) => variables.get(name),
    foundSecret: (secret) => folder.mask.register(secret),
  })
  readSettings(draft, config, isOld)
  await readSkills(draft, folder, 'skills')
  await readJobs(draft, deps)
  await readSessions(draft, deps)
  await leaveRest(draft, folder, version, config)
  return { ...draft, type: 'openclaw', path: folder.path, version, hide: folder.mask.text }
}

async function readConfig(folder: SourceFolder): Promise<{ readonly name: string; readonly config: Fields }> {
  for (const name of CONFIG_FILES) {
    if (!(await folder.has(name))) continue
    const config = await readFields(folder, name, 'json5')
    return { name, config: config ?? {} }
  }
  if (await folder.has('config.yaml'))
    return { name: 'config.yaml', config: (await readFields(folder, 'config.yaml')) ?? {} }
  return { name: 'no configuration', config: {} }
}

/** Variables of the file `.env` of the home, and of `env` in the configuration. */
async function readEnvironment(folder: SourceFolder, config: Fields): Promise<ReadonlyMap<string, string>> {
  const { vars, ...env } = fieldsOf(config['env'])
  const set = Object.entries({ ...env, ...fieldsOf(vars) }).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value] as const] : [],
  )
  return new Map([...set, ...readVariables((await folder.text('.env')) ?? '')])
}

/** Of the newer kind under `channels`; the first ones stood at the top. */
function channelsOf(config: Fields): Fields {
  const top = ['telegram', 'discord', 'slack', 'whatsapp', 'signal', 'imessage'].filter((name) => name in config)
  return { ...Object.fromEntries(top.map((name) => [name, config[name]])), ...fieldsOf(config['channels']) }
}
/** `messaging/<channel>.yaml`. */
async function oldChannels(folder: SourceFolder): Promise<Fields> {
  const found: Record<string, unknown> = {}
  for (const { name, isFolder } of await folder.list('messaging')) {
    const [, channel] = /^(\w+)\.ya?ml$/.exec(name) ?? []
    if (isFolder || channel === undefined) continue
    const fields = await readFields(folder, `messaging/${name}`)
    if (fields) found[textOf(fields['type']) ?? channel] = fields
  }
  return found
}

function readSettings(draft: HomeDraft, config: Fields, isOld: boolean): void {
  const { provider, model } = isOld
    ? { provider: textOf(config['provider']), model: textOf(config['model']) }
    : modelOf(fieldsOf(fieldsOf(config['agents'])['defaults'])['model'] ?? fieldsOf(config['agent'])['model'])
  if (model === undefined) return
  draft.settings.push({
    key: 'default_model',
    value: provider === undefined || provider === 'default' ? model : `${provider}/${model}`,
  })
}
export function modelOf(value: unknown): { readonly provider?: string; readonly model?: string } {
  const name = textOf(value) ?? textOf(fieldsOf(value)['primary'])
  return name === undefined ? {} : splitModel(name)
}

/** What has no counterpart, or must not be taken over. */
const rest: readonly (readonly [name: string, reason: string])[] = [
  ['hooks', 'modules of the other system are programs, and are not run here: write a trigger or a plugin instead'],
  ['extensions', 'plugins of the other system are programs, and are not run here'],
  ['memory-search', 'the index of the memories is made anew'],
  ['kg.json', 'the graph of knowledge of a plugin, in the database that it names, is made anew from conversations'],
  ['wiki', 'what a plugin made of conversations is made anew from them: put files that you wrote into a workspace'],
  ['credentials', 'sign-ins are bound to the other system: sign in anew'],
  ['devices', 'devices are paired anew'],
  ['identity', 'devices are paired anew'],
]
/** Sections of the configuration, and what to do instead. */
const sections: Readonly<Record<string, string>> = {
  bindings: `which agent answers whom is said anew: ${commandLine('channels bindings add --help')}`,
  cron: 'schedules need no switch here: each is enabled by itself',
  gateway: 'where the daemon listens, and its key, are set under [http] of config.toml',
  hooks: `addresses that other programs call are made anew, as triggers: ${commandLine('trigger add --help')}`,
  models: 'keys of providers come over; further models are set under [models] of config.toml',
  plugins: 'plugins of the other system are programs, and are not run here',
  skills: `values of skills are entered anew: ${commandLine('skill config --help')}`,
  tools: 'what agents may do is said in their manifests, and keys of tools are entered anew',
}
const knownKeys = new Set([
  'agents',
  'agent',
  'channels',
  'env',
  'version',
  'schemaVersion',
  'meta',
  'wizard',
  '$schema',
])

async function leaveRest(draft: HomeDraft, folder: SourceFolder, file: string, config: Fields): Promise<void> {
  try {
    const there = new Set((await folder.list('')).map(({ name }) => name))
    for (const [name, reason] of rest) if (there.has(name)) draft.leave('config', name, reason)
  } catch (error) {
    draft.warnings.push(messageOf(error))
  }
  for (const key of Object.keys(config))
    if (!knownKeys.has(key) && !isChannel(key))
      draft.leave(
        'config',
        `${key} in ${file}`,
        entryOf(sections, key) ?? 'this section has no counterpart that is set by itself',
      )
  const agents = fieldsOf(config['agents'])
  const entries = [fieldsOf(agents['defaults']), ...listOf(agents['list']).map(fieldsOf)]
  for (const key of new Set(entries.flatMap((entry) => Object.keys(entry))))
    if (!AGENT_KEYS.has(key))
      draft.leave(
        'config',
        `agents: ${key} in ${file}`,
        key === 'heartbeat'
          ? `an agent is woken by a schedule here: ${commandLine('schedule add --help')}`
          : 'a manifest has no such key here',
      )
}
const isChannel = (key: string): boolean =>
  /^(telegram|discord|slack|whatsapp|signal|imessage|provider|model)$/.test(key)
