import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'gitter',
  title: 'Gitter',
  category: 'developer',
  description: 'An account in rooms of gitter.im, which is a Matrix homeserver.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
