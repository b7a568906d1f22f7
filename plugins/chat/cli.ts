import { defineCli } from 'svc/cli'

export default defineCli({
  name: 'chat',
  commands: { chat: { summary: 'Talk to an agent', load: () => import('./cli/chat.ts') } },
})
