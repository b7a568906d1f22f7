/** The tools of each tool profile (API facts 2.8). `custom` leaves it to the manifest. */
export const profileTools: Readonly<Record<string, readonly string[]>> = {
  minimal: ['file_read', 'file_list'],
  coding: ['file_read', 'file_write', 'file_list', 'shell_exec', 'web_fetch'],
  research: ['web_fetch', 'web_search', 'file_read', 'file_write'],
  messaging: ['agent_send', 'agent_list', 'memory_store', 'memory_recall'],
  automation: [
    'file_read',
    'file_write',
    'file_list',
    'shell_exec',
    'web_fetch',
    'web_search',
    'agent_send',
    'agent_list',
    'memory_store',
    'memory_recall',
  ],
  full: ['*'],
  custom: [],
}
