# SPDX-License-Identifier: Apache-2.0
#
# A guest that fits into the boot sector of its disk: it boots in a moment under emulation, and is enough to see.
#
# What it says on its first serial port, a line each:
#
#     NANO READY      it runs
#     NANO BEAT 002a  about once a second, with how often it has said that since it booted, in hexadecimal
#     NANO BYE        it was asked to power off (by the ACPI button, or by the letter q on the serial port), and does
#
# 18 times a second it changes half a mebibyte of its memory, so that it takes more than 9 MiB/s to follow it. Any other
# letter that comes in on the serial port is sent back. With the letter d it becomes deaf to the power button.
#
# The ports are those of the PC's first UART (0x3f8), and of the power management block of QEMU's machine "pc", which
# SeaBIOS puts at 0x600: status (0x600, bit 8 is the power button), enable (0x602), control (0x604; writing 0x2000,
# which is "sleep now" with type 0, powers off).

    .code16
    .set UART, 0x3f8
    .set UART_STATUS, 0x3fd
    .set PM_STATUS, 0x600
    .set PM_ENABLE, 0x602
    .set PM_CONTROL, 0x604
    .set POWER_BUTTON, 0x100
    .set BIOS_TICKS, 0x46c

    cli
    xorw    %ax, %ax
    movw    %ax, %ds
    movw    %ax, %ss
    movw    $0x7c00, %sp
    cld

    movw    $PM_STATUS, %dx             # forget a button pressed before we listened
    movw    $POWER_BUTTON, %ax
    outw    %ax, %dx
    movw    $PM_ENABLE, %dx
    outw    %ax, %dx
    sti
    movw    $ready, %si
    call    say

idle:
    hlt                                 # until the timer, 18.2 times a second
    movw    $0x1000, %bx
touch:                                  # a word of each page from 64 KiB to 576 KiB
    movw    %bx, %es
    incw    %es:0
    addw    $0x100, %bx
    cmpw    $0x9000, %bx
    jb      touch
    cmpb    $0, deaf
    jne     listen
    movw    $PM_STATUS, %dx
    inw     %dx, %ax
    testw   $POWER_BUTTON, %ax
    jnz     power_off
listen:
    movw    $UART_STATUS, %dx
    inb     %dx, %al
    testb   $1, %al
    jz      beat
    movw    $UART, %dx
    inb     %dx, %al
    cmpb    $'q', %al
    je      power_off
    cmpb    $'d', %al
    jne     echo
    movb    $1, deaf
echo:
    call    put
    jmp     listen
beat:
    movw    BIOS_TICKS, %ax
    movw    %ax, %bx
    subw    last, %bx
    cmpw    $18, %bx
    jb      idle
    movw    %ax, last
    movw    $tick, %si
    call    say
    incw    count
    movw    count, %bx
    movw    $4, %cx
digit:
    rolw    $4, %bx
    movb    %bl, %al
    andb    $15, %al
    addb    $'0', %al
    cmpb    $'9', %al
    jbe     decimal
    addb    $('a' - '9' - 1), %al
decimal:
    call    put
    loop    digit
    movw    $newline, %si
    call    say
    jmp     idle

power_off:
    movw    $bye, %si
    call    say
    movw    $PM_CONTROL, %dx
    movw    $0x2000, %ax
    outw    %ax, %dx
halt:
    hlt
    jmp     halt

say:                                    # the text at %si, up to its zero
    lodsb
    testb   %al, %al
    jz      said
    call    put
    jmp     say
said:
    ret

put:                                    # the letter in %al, when the UART is ready for it
    pushw   %ax
    movw    $UART_STATUS, %dx
full:
    inb     %dx, %al
    testb   $0x20, %al
    jz      full
    popw    %ax
    movw    $UART, %dx
    outb    %al, %dx
    ret

ready:  .asciz "NANO READY\r\n"
tick:   .asciz "NANO BEAT "
newline: .asciz "\r\n"
bye:    .asciz "NANO BYE\r\n"
last:   .word 0
count:  .word 0
deaf:   .byte 0

    .org    510
    .word   0xaa55
