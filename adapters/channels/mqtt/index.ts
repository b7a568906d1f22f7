import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'mqtt',
  title: 'MQTT',
  category: 'notification',
  description: 'Messages on topics of an MQTT broker.',
  setup: {
    icon: 'MQ',
    difficulty: 'medium',
    minutes: 5,
    steps: [
      'Choose topics to read and to write; a + in the topic stands for the sender.',
      'Let the rules of the broker say who may write to them.',
    ],
  },
  load: () => import('./adapter.ts'),
})
