import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'whatsapp',
  title: 'WhatsApp',
  category: 'messaging',
  description: 'The WhatsApp Business Cloud API, or a phone that is linked with a QR code.',
  setup: () => import('./setup.ts'),
  load: () => import('./adapter.ts'),
})
