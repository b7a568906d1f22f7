import type { ChannelSetup } from 'svc/channels'

export default {
  icon: '飞',
  difficulty: 'medium',
  minutes: 10,
  steps: [
    'In the developer console (open.feishu.cn/app, for Lark open.larksuite.com/app) make a custom app, and add the bot.',
    'Copy the App ID and the App Secret of "Credentials & Basic Info"; for Lark choose the region "intl".',
    'Give it the permissions that the documentation lists, and release a version.',
    'Enable the channel, so that it connects.',
    'Under "Events & Callbacks" choose the long connection for both, and add im.message.receive_v1 and card.action.trigger.',
    'Or choose the mode "webhook", and copy the Encrypt Key and the Verification Token of the same page.',
  ],
} satisfies ChannelSetup
