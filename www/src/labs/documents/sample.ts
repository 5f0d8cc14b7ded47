/** A handbook to try the lab with, in the visitor's language, and questions that it answers. */
import type { Lang } from '../../i18n';

export interface Sample {
  readonly name: string;
  readonly text: string;
  readonly questions: readonly string[];
}

const EN: Sample = {
  name: 'shop-handbook.md',
  questions: [
    'How long can a tent be returned?',
    'What does sending a parcel to Norway cost?',
    'Who repairs a bicycle under warranty?',
  ],
  text: `# Handbook of the harbour shop

## Returns

### Time limits

Goods can be returned within 30 days of delivery. A tent that was slept in can be returned within 14 days, if it is dry and clean.

### How to return

Write the order number on the parcel. The label is printed at the counter or sent by mail. Returned money arrives within five working days.

### What cannot be returned

Gas bottles, opened maps and goods made to measure stay with the customer.

## Shipping

### Prices

A parcel up to 5 kg costs 6 euros inside the country. A parcel to Norway costs 24 euros and takes four to six days; customs are paid by the receiver.

### Large goods

Bicycles and canoes go by carrier. The carrier calls a day before.

## Warranty

### Duration

Lamps and stoves have two years of warranty, bicycles five years on the frame and one year on all that moves.

### Repairs

A bicycle under warranty is repaired by the workshop at pier 4, which also lends one for the time. Stoves are exchanged, not repaired.

## Opening hours

The shop is open from nine to six, on Saturdays until two. In July it opens an hour earlier.

## Gift cards

A gift card is valid for three years and can be used in parts. Lost cards are replaced when their number is known.
`,
};

const ZH: Sample = {
  name: '港口商店手册.md',
  questions: ['帐篷多久之内可以退货？', '寄包裹到挪威要多少钱？', '保修期内的自行车由谁修理？'],
  text: `# 港口商店手册

## 退货

### 期限

商品可在送达后 30 天内退货。使用过的帐篷如果干燥整洁，可在 14 天内退货。

### 如何退货

请在包裹上写明订单号。标签可在柜台打印，也可邮寄。退款将在五个工作日内到账。

### 不可退货的商品

气罐、已拆封的地图和定制商品不予退货。

## 配送

### 价格

国内 5 公斤以内的包裹运费为 6 欧元。寄往挪威的包裹运费为 24 欧元，需要四到六天；关税由收件人承担。

### 大件商品

自行车和独木舟由货运公司运送，货运公司会提前一天致电。

## 保修

### 期限

灯具和炉具保修两年，自行车车架保修五年，所有活动部件保修一年。

### 维修

保修期内的自行车由 4 号码头的工坊修理，期间可借用另一辆。炉具只换不修。

## 营业时间

商店九点至十八点营业，星期六营业至十四点。七月提前一小时开门。

## 礼品卡

礼品卡有效期为三年，可分次使用。知道卡号时，丢失的卡可以补发。
`,
};

export function sampleFor(lang: Lang): Sample {
  return lang === 'zh' ? ZH : EN;
}
