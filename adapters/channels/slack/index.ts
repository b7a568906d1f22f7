import { defineChannel } from 'svc/channels'
import type { ChannelDeclaration } from 'svc/channels'

export const slack: ChannelDeclaration = {
  name: 'slack',
  title: 'Slack',
  category: 'enterprise',
  description: 'An app in the channels and direct messages of a Slack workspace, over Socket Mode or the Events API.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
}

export default defineChannel('1.0.0', slack)
