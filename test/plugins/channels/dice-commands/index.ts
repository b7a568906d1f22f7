import * as v from 'valibot'
import { definePlugin, defineService } from 'svc/sdk'
import type { SlashCommands } from '../../../../plugins/chat/contract.ts'

/** Adds a slash command, as any plugin may. */
export default definePlugin({
  name: 'dice-commands',
  version: '1.0.0',
  config: v.object({}),
  requires: { commands: defineService<SlashCommands>()('slash-commands') },
  setup({ own, services: { commands } }) {
    own(
      'command',
      commands.add({
        name: 'dice',
        aliases: ['roll-dice'],
        takes: '[what]',
        description: 'rolls the dice',
        effectOf: (argument) => (argument === 'set' ? 'lasting' : 'conversation'),
        run: ({ argument }) => `It rolls: ${argument}`,
      }),
    )
    own(
      'command of the command line',
      commands.add({
        name: 'coin',
        description: 'tosses a coin',
        surfaces: ['cli'],
        effectOf: () => 'read',
        run: () => 'Heads.',
      }),
    )
    return {}
  },
})
