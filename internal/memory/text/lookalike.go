package text

// lookalikes are letters of other scripts, and other drawings of letters, that are
// read as a Latin one.
var lookalikes = map[rune]rune{
	'а': 'a', 'в': 'b', 'с': 'c', 'ԁ': 'd', 'е': 'e', 'һ': 'h', 'н': 'h', 'і': 'i', 'ј': 'j', 'к': 'k', 'ӏ': 'l', 'м': 'm', 'п': 'n', 'о': 'o', 'р': 'p', 'ѕ': 's',
	'т': 't', 'ц': 'u', 'ѵ': 'v', 'х': 'x', 'у': 'y', 'ѡ': 'w', 'ԝ': 'w', 'ԛ': 'q', 'ь': 'b', 'ё': 'e', 'ї': 'i',
	'ց': 'g', 'ո': 'n', 'ս': 'u', 'օ': 'o', 'հ': 'h', 'ք': 'p', 'զ': 'q', 'ա': 'w',
	'α': 'a', 'β': 'b', 'γ': 'y', 'ε': 'e', 'η': 'n', 'ι': 'i', 'κ': 'k', 'μ': 'u', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'σ': 'o', 'τ': 't', 'υ': 'u', 'χ': 'x', 'ω': 'w',
	'ɑ': 'a', 'ı': 'i', 'ɡ': 'g', 'ℓ': 'l', 'ɩ': 'i', 'ƅ': 'b', 'ɗ': 'd', 'ɓ': 'b', 'ƈ': 'c', 'ƒ': 'f', 'ɠ': 'g', 'ɦ': 'h', 'ɨ': 'i', 'ʝ': 'j', 'ƙ': 'k', 'ɭ': 'l', 'ɱ': 'm', 'ɲ': 'n', 'ŋ': 'n',
	'ø': 'o', 'ƥ': 'p', 'ʂ': 's', 'ƭ': 't', 'ʋ': 'v', 'ƴ': 'y', 'ʐ': 'z', 'đ': 'd', 'ħ': 'h', 'ł': 'l', 'ŧ': 't',
	// small capitals
	'ᴀ': 'a', 'ʙ': 'b', 'ᴄ': 'c', 'ᴅ': 'd', 'ᴇ': 'e', 'ꜰ': 'f', 'ɢ': 'g', 'ʜ': 'h', 'ɪ': 'i', 'ᴊ': 'j', 'ᴋ': 'k', 'ʟ': 'l', 'ᴍ': 'm', 'ɴ': 'n', 'ᴏ': 'o', 'ᴘ': 'p', 'ꞯ': 'q', 'ǫ': 'q',
	'ʀ': 'r', 'ꜱ': 's', 'ᴛ': 't', 'ᴜ': 'u', 'ᴠ': 'v', 'ᴡ': 'w', 'ʏ': 'y', 'ᴢ': 'z',
	// turned letters
	'ɐ': 'a', 'ɔ': 'c', 'ǝ': 'e', 'ɟ': 'f', 'ƃ': 'g', 'ɥ': 'h', 'ᴉ': 'i', 'ɾ': 'j', 'ʞ': 'k', 'ɯ': 'm', 'ɹ': 'r', 'ʇ': 't', 'ʌ': 'v', 'ʍ': 'w', 'ʎ': 'y',
	// Cherokee, in its small letters and its capitals
	'ꭰ': 'd', 'Ꭰ': 'd', 'Ꭱ': 'r', 'Ꭲ': 't', 'Ꭵ': 'i', 'Ꭺ': 'a', 'Ꭻ': 'j', 'Ꭼ': 'e', 'Ꮃ': 'w', 'Ꮇ': 'm', 'Ꮋ': 'h', 'Ꮐ': 'g', 'Ꮓ': 'z', 'Ꮖ': 'i', 'Ꮜ': 'u', 'Ꮟ': 'b', 'Ꮢ': 'r',
	'Ꮤ': 'w', 'Ꮥ': 's', 'Ꮩ': 'v', 'Ꮪ': 's', 'Ꮮ': 'l', 'Ꮯ': 'c', 'Ꮲ': 'p', 'Ꮶ': 'k', 'Ᏼ': 'b', 'Ꭹ': 'y', 'ꮃ': 'w', 'ꮓ': 'z', 'ꮪ': 's', 'ꮩ': 'v', 'ꮯ': 'c', 'ꭺ': 'a', 'ꭼ': 'e', 'ꮇ': 'm', 'ꮋ': 'h', 'ꮮ': 'l', 'ꮲ': 'p', 'ꮶ': 'k', 'ꮐ': 'g', 'ꭱ': 'r', 'ꭲ': 't',
	'∂': 'd', '∪': 'u',
}

// Latin returns the small Latin letter that a small letter of another script, or
// another drawing of a letter, is mistaken for, and r itself for all others.
func Latin(r rune) rune {
	switch {
	case r < 0x80:
		return r
	case 0x1F150 <= r && r <= 0x1F169: // in a dark circle
		return 'a' + r - 0x1F150
	case 0x1F170 <= r && r <= 0x1F189: // in a dark square
		return 'a' + r - 0x1F170
	case 0x1F1E6 <= r && r <= 0x1F1FF: // those of flags
		return 'a' + r - 0x1F1E6
	}
	if latin, found := lookalikes[r]; found {
		return latin
	}
	return r
}
