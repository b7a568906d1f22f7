import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'mqtt',
  title: 'MQTT',
  category: 'notification',
  description: 'Messages on topics of an MQTT broker.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
