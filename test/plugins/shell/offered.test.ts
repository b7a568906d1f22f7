import { startPlugin } from 'svc/testing'
import { expect, it } from 'vitest'
import { turnPlugins } from '../plugin-test.ts'

it('an agent is told of tools that need a capability only when it has some of it', async () => {
  await using test = await startPlugin({
    plugin: new URL('../../../plugins/shell/', import.meta.url),
    builtIns: [...turnPlugins, 'files', 'web', 'delegation'],
  })
  const rights = 'shell = ["git *"]\nnetwork = ["example.com"]\nagent_spawn = true\nagent_message = ["*"]'
  const needy = ['shell_exec', 'process_start', 'process_list', 'web_fetch', 'agent_send', 'agent_spawn']
  const offered = async (name: string, capabilities: string): Promise<readonly string[]> => {
    await test.say(await test.spawn(name, `[capabilities]\ntools = ["*"]\n${capabilities}`), 'hello')
    return (test.model.requests.at(-1)?.tools ?? []).map((tool) => tool.name)
  }
  const bare = await offered('bare', '')
  expect(bare.filter((tool) => needy.includes(tool))).toEqual([])
  expect(bare).toContain('file_read')
  expect(await offered('full', rights)).toEqual(expect.arrayContaining(needy))
})
