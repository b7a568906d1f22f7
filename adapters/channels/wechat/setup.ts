import type { ChannelSetup } from 'svc/channels'

export default {
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
} satisfies ChannelSetup
