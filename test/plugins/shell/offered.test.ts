import { expect, it } from 'vitest'
import { openTools } from '../../support/tool-stage.ts'

it('an agent is told of tools that need a capability only when it has some of it', async () => {
  await using stage = await openTools(['shell', 'web', 'delegation'])
  const [bare, full] = [
    await stage.spawn('bare'),
    await stage.spawn(
      'full',
      'shell = ["git *"]\nnetwork = ["example.com"]\nagent_spawn = true\nagent_message = ["*"]',
    ),
  ]
  const needy = ['shell_exec', 'process_start', 'process_list', 'web_fetch', 'agent_send', 'agent_spawn']
  const told = await stage.say(bare, 'list tools')
  for (const tool of needy) expect(told).not.toContain(`- ${tool}:`)
  expect(told).toContain('- file_read:')
  const all = await stage.say(full, 'list tools')
  for (const tool of needy) expect(all).toContain(`- ${tool}:`)
})
