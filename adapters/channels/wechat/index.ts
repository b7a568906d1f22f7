import { defineChannel } from 'svc/channels'

export default defineChannel('1.0.0', {
  name: 'wechat',
  title: 'WeChat',
  category: 'messaging',
  description: 'A bot of a WeChat account, linked with a QR code, or an official account.',
  setup: {
    icon: 'WX',
    difficulty: 'medium',
    minutes: 10,
    steps: [
      'Save the channel in the mode "bot", start the QR code, and scan it with WeChat on your phone.',
      'Confirm on the phone: the bot appears in your chats.',
      'Or choose the mode "official_account", and copy the app id and the app secret at mp.weixin.qq.com.',
      'There, under basic configuration, set the address of the webhook, a token of your own and the safe mode.',
      'Copy the EncodingAESKey into "aes_key" and the token into "webhook_token", and allow the address of the daemon.',
    ],
  },
  load: () => import('./adapter.ts'),
})
