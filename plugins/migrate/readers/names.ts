import { entryOf } from '../source/values.ts'

/** What other systems call the tools of the daemon; a name that is not here is the same or unknown. */
const tools: Readonly<Record<string, string>> = {
  read: 'file_read',
  write: 'file_write',
  edit: 'file_write',
  apply_patch: 'apply_patch',
  exec: 'shell_exec',
  bash: 'shell_exec',
  process: 'process_start',
  read_file: 'file_read',
  write_file: 'file_write',
  list_files: 'file_list',
  execute_command: 'shell_exec',
  fetch_url: 'web_fetch',
  memory_search: 'memory_recall',
  memory_get: 'memory_recall',
  memory_save: 'memory_store',
  sessions_send: 'agent_send',
  sessions_list: 'agent_list',
  agents_list: 'agent_list',
  agent_message: 'agent_send',
  message: 'channel_send',
  cron: 'cron_create',
}
/** Sets of tools, as OpenClaw names them. */
const groups: Readonly<Record<string, readonly string[]>> = {
  'group:fs': ['file_read', 'file_write', 'file_list', 'apply_patch'],
  'group:runtime': ['shell_exec'],
  'group:web': ['web_fetch', 'web_search'],
  'group:memory': ['memory_recall', 'memory_store'],
  'group:sessions': ['agent_send', 'agent_list'],
  'group:messaging': ['channel_send'],
}
export const toolNames = (names: readonly string[]): readonly string[] => [
  ...new Set(
    names.flatMap((name) => entryOf(groups, name.toLowerCase()) ?? [entryOf(tools, name.toLowerCase()) ?? name]),
  ),
]

const providers: Readonly<Record<string, string>> = {
  claude: 'anthropic',
  gpt: 'openai',
  google: 'gemini',
  'google-generative-ai': 'gemini',
  grok: 'xai',
}
export const providerName = (name: string): string => entryOf(providers, name.toLowerCase()) ?? name.toLowerCase()

/** `provider/model`, or a model alone. */
export function splitModel(text: string): { readonly provider: string; readonly model: string } {
  const at = text.indexOf('/')
  return at < 0
    ? { provider: 'default', model: text }
    : { provider: providerName(text.slice(0, at)), model: text.slice(at + 1) }
}

const PROFILES = new Set(['minimal', 'coding', 'research', 'messaging', 'automation', 'full', 'custom'])
export const isProfile = (name: string | undefined): name is string => name !== undefined && PROFILES.has(name)
