import { defineChannel } from 'svc/channels'
import type { ChannelDeclaration } from 'svc/channels'

export const matrix: ChannelDeclaration = {
  name: 'matrix',
  title: 'Matrix',
  category: 'messaging',
  description: 'An account on a Matrix homeserver, in rooms without encryption.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
}

export default defineChannel('1.0.0', matrix)
